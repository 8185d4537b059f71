#include "journal/crash_mark.h"

#include <unistd.h>

#include "journal/journal_harness.h"

namespace aimaster {
namespace {

class CrashMarkTest : public testing::Test {
 protected:
  void DieOver(const Input& input) {
    EXPECT_EQ(InChildProcess([&]() -> std::string {
                CrashMark mark(path());
                mark.Enter({input.at, Tick{}});
                mark.Leave();
                mark.Enter(input);
                _exit(0);
              }),
              "");
  }
  std::filesystem::path path() const { return directory_ / "crash_mark"; }
  const TemporaryDirectory directory_;
  const Input lost_{Moment{{}, Wall{Duration{5}}}, NodeLost{NodeIndex{3}, "gone"}};
};

TEST_F(CrashMarkTest, WhoDiedOverNothingLeavesNothing) {
  EXPECT_FALSE(CrashMark(path()).crash());
  CrashMark mark(path());
  mark.Enter(lost_);
  mark.Leave();
  EXPECT_FALSE(CrashMark(path()).crash());
}

TEST_F(CrashMarkTest, TheSameInputAtAnotherTimeIsTheSame) {
  DieOver(lost_);
  ASSERT_TRUE(CrashMark(path()).crash());
  EXPECT_EQ(CrashMark(path()).crash()->times, 1u);
  Input again = lost_;
  again.at.wall.since_epoch += std::chrono::hours{1};
  EXPECT_EQ(InChildProcess([&]() -> std::string {
              CrashMark mark(path());
              mark.Enter(again);
              _exit(0);
            }),
            "");
  const CrashMark mark(path());
  ASSERT_TRUE(mark.crash());
  EXPECT_EQ(mark.crash()->times, CrashMark::kCrashesMax);
  EXPECT_EQ(mark.crash()->kind, "NodeLost");
  EXPECT_EQ(mark.crash()->first, lost_.at.wall);
  EXPECT_NE(CrashMark::Explain(*mark.crash()).find("aimaster resume"), std::string::npos);
}

TEST_F(CrashMarkTest, AnotherInputBeginsAnew) {
  DieOver(lost_);
  DieOver({lost_.at, NodeLost{NodeIndex{4}, "gone"}});
  ASSERT_TRUE(CrashMark(path()).crash());
  EXPECT_EQ(CrashMark(path()).crash()->times, 1u);
}

TEST_F(CrashMarkTest, AFileOfAnotherKindOrNoneAtAllIsNoCrash) {
  std::ofstream(path()) << std::string(64, 'x');
  EXPECT_FALSE(CrashMark(path()).crash());
  CrashMark nowhere(directory_ / "missing" / "crash_mark");
  nowhere.Enter(lost_);
  nowhere.Leave();
  EXPECT_FALSE(nowhere.crash());
}

}  // namespace
}  // namespace aimaster
