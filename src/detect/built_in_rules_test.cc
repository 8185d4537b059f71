// The rules that are built in, and what a table of rules refuses.
#include "detect/built_in_rules.h"

#include <gtest/gtest.h>

#include <string>

#include "detect/pattern_matcher.h"
#include "detect/rule_table.h"

namespace aimaster {
namespace {

std::string RuleFor(RankFailure failure) {
  const RuleTable& rules = RuleTable::BuiltIn();
  return rules.rule(rules.ForEnding(failure)).code;
}
std::string RuleForCode(int code) { return RuleFor({.exit = RankExit{.code = code}}); }
std::string RuleForSignal(int signal) { return RuleFor({.exit = RankExit{.signal = signal}}); }

Retryable RetryableOf(const std::string& code) {
  const RuleTable& rules = RuleTable::BuiltIn();
  return rules.rule(rules.Find(code).value()).retryable;
}

TEST(BuiltInRulesTest, SignalsFromOutsideAreRetryable) {
  for (int code : {130, 137, 138, 143}) EXPECT_EQ(RetryableOf(RuleForCode(code)), Retryable::kYes) << code;
  for (int signal : {1, 2, 9, 10, 12, 15, 64}) EXPECT_EQ(RetryableOf(RuleForSignal(signal)), Retryable::kYes) << signal;
}

TEST(BuiltInRulesTest, CrashesAreRetryableOncePerPlace) {
  for (int code : {134, 139}) EXPECT_EQ(RetryableOf(RuleForCode(code)), Retryable::kOncePerPlace) << code;
  for (int signal : {4, 6, 7, 8, 11}) EXPECT_EQ(RetryableOf(RuleForSignal(signal)), Retryable::kOncePerPlace) << signal;
}

TEST(BuiltInRulesTest, OtherExitCodesAreNot) {
  for (int code = 1; code < 256; ++code) {
    if (code >= 129 && code <= 159) continue;  // what shells report for signals
    EXPECT_EQ(RetryableOf(RuleForCode(code)), Retryable::kNo) << code;
  }
  EXPECT_EQ(RuleForCode(1), "UnknownError");
  EXPECT_EQ(RuleForCode(255), "UnknownError");
  EXPECT_EQ(RuleForCode(7), "ExitCode");
  EXPECT_EQ(RuleForCode(300), "ExitCode") << "no such code exists; it is no reason to crash";
}

TEST(BuiltInRulesTest, ARankThatWeStoppedMayTryAgainThoughItEndedWithZero) {
  RankFailure stopped{.exit = RankExit{.code = 0}};
  stopped.stopped_by_us = true;
  EXPECT_EQ(RuleFor(stopped), "StoppedInGoodOrder");
  EXPECT_EQ(RetryableOf("StoppedInGoodOrder"), Retryable::kYes);
}

TEST(BuiltInRulesTest, EndingsBesideExitStatuses) {
  EXPECT_EQ(RuleFor({.lost_reason = "gone", .node_lost = true}), "NodeLost");
  EXPECT_EQ(RuleFor({.lost_reason = "the shim was killed"}), "ProcessLost");
  EXPECT_EQ(RuleFor({.exit = RankExit{.code = 127}, .exec_error = "no such file"}), "CommandNotFound");
  EXPECT_EQ(RuleFor({.exit = RankExit{.code = 126}, .exec_error = "is a directory"}), "CommandNotExecutable");
  EXPECT_EQ(RuleForCode(127), "ShellCommandNotFound") << "a shell inside the job said so";
  EXPECT_EQ(RuleFor({.exit = RankExit{.signal = 9, .out_of_memory = true}}), "HostOutOfMemory");
}

TEST(BuiltInRulesTest, EveryPatternIsInTheDatabaseUnderItsNumber) {
  PatternMatcher matcher;
  const RuleTable& rules = RuleTable::BuiltIn();
  ASSERT_EQ(matcher.Match("Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.").never_root, true);
  ASSERT_EQ(matcher.error(), "");
  const auto code = [&](std::string_view line) {
    const auto found = matcher.Match(line);
    return found.line ? rules.rule(*found.line).code : "";
  };
  EXPECT_EQ(code("slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO PREEMPTION ***"),
            "Preempted");
  EXPECT_EQ(code("E   OSError: [Errno 5] Input/output error"), "StorageError");
  EXPECT_EQ(code("DistStoreError: wait timeout"), "RendezvousTimeout");
  EXPECT_EQ(code("loss 0.25, acc 0.9, 120 img/s"), "");
}

TEST(RuleTableTest, RefusesWhatWouldBeAmbiguousOrIncomplete) {
  RuleSet set = BuiltInRuleSet();
  set.rules.push_back(set.rules.front());
  EXPECT_FALSE(RuleTable::Make(set).has_value()) << "the same code twice";

  set = BuiltInRuleSet();
  set.rules.front().exit_codes = {1};
  EXPECT_FALSE(RuleTable::Make(set).has_value()) << "an exit code twice";

  set = BuiltInRuleSet();
  set.rules.erase(set.rules.begin());
  ASSERT_FALSE(RuleTable::Make(set).has_value());
  EXPECT_EQ(RuleTable::Make(set).error().message, "no rule has the ending 'command_not_found': add one that does");
}

}  // namespace
}  // namespace aimaster
