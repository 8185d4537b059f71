// What the words of a watchdog are good for.
#include "detect/interval_advice.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

namespace aimaster {
namespace {

using namespace std::chrono_literals;

std::string Watchdog(const std::string& timeout) {
  return "[rank3]:[E ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation timeout: "
         "WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=" +
         timeout + ") ran for 600026 milliseconds before timing out.";
}

std::vector<RankFailure> Said(const std::string& line) {
  RankFailure failure;
  failure.matches.push_back({.rule = "CollectiveTimeout", .line = line, .file = "rank0.err"});
  return {RankFailure(), failure};
}

TEST(IntervalAdviceTest, TheTimeoutIsReadFromTheLine) {
  EXPECT_EQ(WatchdogTimeout(Watchdog("600000")), 600s);
  EXPECT_EQ(WatchdogTimeout(Watchdog("1800000")), 1800s);
  EXPECT_EQ(WatchdogTimeout(Watchdog("")), std::nullopt);
  EXPECT_EQ(WatchdogTimeout(Watchdog("-5")), std::nullopt);
  EXPECT_EQ(WatchdogTimeout(Watchdog("0")), std::nullopt);
  EXPECT_EQ(WatchdogTimeout(Watchdog("99999999999999999999")), std::nullopt);
  EXPECT_EQ(WatchdogTimeout("Timeout(ms)=600000"), std::nullopt) << "of whatever that is";
  EXPECT_EQ(WatchdogTimeout("Watchdog caught collective operation timeout"), std::nullopt);
}

TEST(IntervalAdviceTest, ASixthOfItIsTakenOffAndAtLeast150Seconds) {
  EXPECT_EQ(IntervalBefore(600s), 450s);
  EXPECT_EQ(IntervalBefore(1800s), 1500s);
  EXPECT_EQ(IntervalBefore(900s), 750s);
  EXPECT_EQ(IntervalBefore(3600s), 3000s);
  EXPECT_EQ(IntervalBefore(151s), 1s);
  EXPECT_EQ(IntervalBefore(150s), std::nullopt) << "nothing is left";
}

TEST(IntervalAdviceTest, AJobThatIsLookedAfterSoAlreadyNeedsNoAdvice) {
  FaultToleranceParameters parameters;
  EXPECT_EQ(AdviseInterval(Said(Watchdog("600000")), parameters), 450s) << "the detection is off";
  parameters.enable_job_hang_detection = true;
  EXPECT_EQ(AdviseInterval(Said(Watchdog("600000")), parameters), 450s) << "1800 s is too long";
  parameters.job_hang_interval = 450s;
  EXPECT_EQ(AdviseInterval(Said(Watchdog("600000")), parameters), std::nullopt);
  parameters.job_hang_interval = 451s;
  EXPECT_EQ(AdviseInterval(Said(Watchdog("600000")), parameters), 450s);
  parameters.execution_mode = ExecutionMode::kAsync;
  EXPECT_EQ(AdviseInterval(Said(Watchdog("600000")), parameters), std::nullopt) << "hangs are looked for in Sync alone";
  EXPECT_EQ(AdviseInterval(Said("CUDA out of memory"), {}), std::nullopt);
}

TEST(IntervalAdviceTest, TheShortestTimeoutCounts) {
  std::vector<RankFailure> failures = Said(Watchdog("1800000"));
  failures.push_back(Said(Watchdog("600000")).back());
  EXPECT_EQ(AdviseInterval(failures, {}), 450s);
}

RC_GTEST_PROP(IntervalAdvicePropertyTest, TheAdviceIsAlwaysShorterThanTheTimeout, ()) {
  const auto timeout = std::chrono::milliseconds(*rc::gen::inRange<int64_t>(1, 1'000'000'000'000));
  const auto advice = WatchdogTimeout(Watchdog(std::to_string(timeout.count())))
                          ? IntervalBefore(timeout)
                          : std::optional<std::chrono::seconds>();
  if (!advice) return;
  RC_ASSERT(*advice >= 1s);
  RC_ASSERT(timeout - *advice >= 150s);
}

}  // namespace
}  // namespace aimaster
