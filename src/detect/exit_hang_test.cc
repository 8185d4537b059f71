// A job that should be over.
#include "detect/exit_hang.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace aimaster {
namespace {

using namespace std::chrono_literals;

constexpr Monotonic At(Duration time) { return {time}; }

TEST(ExitHangTest, AsLongAsNobodyHasEndedNothingIsWaitedFor) {
  const ExitVerdict verdict = JudgeExit({.interval = 10s, .first_success = {}, .all_heard = At(1000s)}, At(1000s));
  EXPECT_EQ(verdict.hang, ExitHang::kNotYet);
  EXPECT_EQ(verdict.due, std::nullopt);
}

TEST(ExitHangTest, TheOthersHaveTheInterval) {
  ExitSignals job{.interval = 10s, .first_success = At(100s), .all_heard = At(109s)};
  EXPECT_EQ(JudgeExit(job, At(110s - 1ns)).hang, ExitHang::kNotYet);
  EXPECT_EQ(JudgeExit(job, At(110s)).hang, ExitHang::kUnsure) << "one may have ended, and not told yet";
  job.all_heard = At(110s);
  EXPECT_EQ(JudgeExit(job, At(110s)).hang, ExitHang::kHang);
  EXPECT_EQ(JudgeExit(job, At(110s)).due, At(110s));
}

RC_GTEST_PROP(ExitHangPropertyTest, NeverBeforeTheIntervalAndNeverWithoutAllHeard, ()) {
  const auto any = [] { return At(std::chrono::milliseconds(*rc::gen::inRange(0, 60'000))); };
  const ExitSignals job{
      .interval = std::chrono::milliseconds(*rc::gen::inRange(1, 20'000)), .first_success = any(), .all_heard = any()};
  const Monotonic now = any();
  const bool is_over = now - *job.first_success >= job.interval;
  const bool is_heard = *job.all_heard - *job.first_success >= job.interval;
  RC_ASSERT((JudgeExit(job, now).hang == ExitHang::kHang) == (is_over && is_heard));
}

}  // namespace
}  // namespace aimaster
