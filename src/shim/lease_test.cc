// Nobody is left above the shim: it ends its ranks itself, and never when somebody is there.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>

#include "shim/lease_format.h"
#include "shim/lease_rule.h"
#include "shim/shim_test_support.h"

namespace aimaster::shim_test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr int kTimeoutMs = 400;
// The margin, the looks, and a machine with other things to do.
constexpr auto kLongEnough = 3s;

std::string BootId() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

class LeaseTest : public testing::Test {
 protected:
  LeaseTest() {
    attempt.lease = attempt / "lease";
    attempt.orphan_timeout_ms = kTimeoutMs;
  }

  void Renew() const {
    const Lease lease = MakeLease(BootId().c_str(), getpid(), NowNs(), kTimeoutMs * 1'000'000LL);
    const int fd = open(attempt.lease.c_str(), O_WRONLY | O_CREAT, 0600);
    ASSERT_EQ(pwrite(fd, &lease, sizeof lease, 0), static_cast<ssize_t>(sizeof lease));
    close(fd);
  }

  void WriteLaunch() const {
    attempt.WriteLaunchOf({{"bash", "-c", "trap 'exit 0' TERM; touch ready; while :; do sleep 0.01; done"}});
  }
  bool IsUp() const {
    return Eventually([&] { return attempt.Has("ready") && attempt.Has("started.json"); });
  }

  // For so long `renew` happens all the time; true when the shim lives on.
  template <typename Function>
  static bool LivesOn(Child& shim, Function renew) {
    const auto end = steady_clock::now() + kLongEnough;
    Eventually([&] {
      renew();
      return shim.Ended() || steady_clock::now() > end;
    });
    return !shim.Ended();
  }

  void ExpectOrphaned() const {
    EXPECT_EQ(attempt.Exit(0)["code"], 0);
    EXPECT_EQ(attempt.Exit(0)["stopped_by_us"], false) << "no master wanted it";
    EXPECT_GE(attempt.Exit(0)["orphaned_ms"], kTimeoutMs);
    EXPECT_GE(attempt.Json("ended.json")["orphaned_ms"], kTimeoutMs);
    EXPECT_NE(attempt.Messages().find("no master for "), std::string::npos) << attempt.Messages();
  }

  AttemptDirectory attempt;
};

TEST_F(LeaseTest, ThatNobodyRenewsEndsTheRanksInGoodOrder) {
  Renew();
  WriteLaunch();
  Child shim(attempt.ShimCommand(), attempt / "shim.log");
  ASSERT_TRUE(IsUp());
  ASSERT_EQ(shim.Wait(), 0);
  ExpectOrphaned();
}

TEST_F(LeaseTest, ThatIsRenewedIsAllThatItTakes) {
  WriteLaunch();
  Renew();
  Child shim(attempt.ShimCommand(), attempt / "shim.log");
  ASSERT_TRUE(IsUp());
  EXPECT_TRUE(LivesOn(shim, [&] { Renew(); }));
  EXPECT_EQ(attempt.Messages(), "");
}

TEST_F(LeaseTest, ThatIsNotThereCountsFromTheStart) {
  WriteLaunch();
  Child shim(attempt.ShimCommand(), attempt / "shim.log");
  ASSERT_TRUE(IsUp());
  ASSERT_EQ(shim.Wait(), 0);
  ExpectOrphaned();
  EXPECT_NE(attempt.Messages().find("cannot read the lease"), std::string::npos) << attempt.Messages();
}

TEST_F(LeaseTest, ThatIsNonsenseCountsFromTheLastGoodOne) {
  WriteLaunch();
  Renew();
  Child shim(attempt.ShimCommand(), attempt / "shim.log");
  ASSERT_TRUE(IsUp());
  std::ofstream(attempt.lease) << std::string(64, 'x');
  ASSERT_EQ(shim.Wait(), 0);
  ExpectOrphaned();
  EXPECT_NE(attempt.Messages().find("not a lease of this boot"), std::string::npos) << attempt.Messages();
}

TEST_F(LeaseTest, ThatWasMadeAnewIsFound) {
  WriteLaunch();
  Renew();
  Child shim(attempt.ShimCommand(), attempt / "shim.log");
  ASSERT_TRUE(IsUp());
  std::filesystem::remove(attempt.lease);
  EXPECT_TRUE(LivesOn(shim, [&] { Renew(); }));
}

TEST_F(LeaseTest, ThatCanNotBeWrittenIsRenewedBySignal) {
  WriteLaunch();
  Child shim(attempt.ShimCommand(), attempt / "shim.log");
  ASSERT_TRUE(IsUp());
  EXPECT_TRUE(LivesOn(shim, [&] { shim.Signal(SIGURG); }));
}

TEST_F(LeaseTest, AThawedShimGivesTheOthersTimeToWakeUp) {
  WriteLaunch();
  Renew();
  Child shim(attempt.ShimCommand(), attempt / "shim.log");
  ASSERT_TRUE(IsUp());
  shim.Signal(SIGSTOP);
  const auto thaw = steady_clock::now() + kLongEnough;
  Eventually([&] { return steady_clock::now() > thaw; });
  shim.Signal(SIGCONT);
  const auto renewal = steady_clock::now() + 300ms;
  Eventually([&] { return steady_clock::now() > renewal; });
  EXPECT_TRUE(LivesOn(shim, [&] { Renew(); }));
}

TEST_F(LeaseTest, AnAgentThatStopsForWantOfAMasterSaysSo) {
  WriteLaunch();
  Renew();
  Child shim(attempt.ShimCommand(), attempt / "shim.log");
  ASSERT_TRUE(IsUp());
  sigqueue(shim.pid(), SIGTERM, {.sival_int = 12'345});
  ASSERT_EQ(shim.Wait(), 0);
  EXPECT_EQ(attempt.Exit(0)["stopped_by_us"], false);
  EXPECT_EQ(attempt.Exit(0)["orphaned_ms"], 12'345);
}

TEST_F(LeaseTest, AMastersOrderThatCameFirstKeepsItsReason) {
  attempt.WriteLaunchOf({{"bash", "-c", "trap 'touch told' TERM; touch ready; while :; do sleep 0.01; done"}}, 1500);
  Renew();
  Child shim(attempt.ShimCommand(), attempt / "shim.log");
  ASSERT_TRUE(IsUp());
  shim.Signal(SIGTERM);
  ASSERT_TRUE(Eventually([&] { return attempt.Has("told"); }));
  sigqueue(shim.pid(), SIGTERM, {.sival_int = 12'345});
  ASSERT_EQ(shim.Wait(), 0);
  EXPECT_EQ(attempt.Exit(0)["signal"], SIGKILL);
  EXPECT_EQ(attempt.Exit(0)["stopped_by_us"], true);
  EXPECT_FALSE(attempt.Exit(0).contains("orphaned_ms"));
}

}  // namespace
}  // namespace aimaster::shim_test
