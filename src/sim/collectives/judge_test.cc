// What counts as a right verdict, a miss and a false accusation.
#include "sim/collectives/judge.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/collectives/seed_run.h"
#include "sim/collectives/tally.h"

namespace aimaster::sim::collectives {
namespace {

using c4d::Level;
using c4d::Verdict;
using c4d::VerdictKind;

// The first seed with one such fault, all of which can be seen and has to be named.
Scenario Plain(FaultKind kind) {
  for (uint64_t seed = 1;; seed += 2) {
    const Scenario scenario = DrawScenario(seed);
    if (scenario.faults.size() != 1 || scenario.faults[0].kind != kind || scenario.is_early) continue;
    const Sight& sight = scenario.sight;
    if (!sight.started || !sight.ages || sight.kept != 0 || scenario.dimensions.ranks() > 64) continue;
    if (std::ranges::count(sight.is_hidden, true) == 0) return scenario;
  }
}

Judgement JudgeOf(const Scenario& scenario, const std::vector<Verdict>& verdicts) {
  return RunSeed(scenario.seed, [&](const auto&, const auto&) { return verdicts; }, false).judgement;
}

Verdict Of(VerdictKind kind, Level level, uint32_t rank) {
  return {.kind = kind, .level = level, .ranks = {Rank{rank}}};
}

TEST(JudgeTest, WhoIsMissedAndIsNotNamedIsAMiss) {
  for (const FaultKind kind : {FaultKind::kHostBefore, FaultKind::kHostAhead, FaultKind::kDeviceBefore,
                               FaultKind::kDeviceInside, FaultKind::kMismatch, FaultKind::kOppositeOrder}) {
    const Judgement judgement = JudgeOf(Plain(kind), {});
    EXPECT_EQ(judgement.required, 1u) << Name(kind);
    EXPECT_EQ(judgement.misses.size(), 1u) << Name(kind);
    EXPECT_TRUE(judgement.false_accusations.empty());
  }
}

TEST(JudgeTest, TheRightRankOfTheRightKindIsRight) {
  const Scenario host = Plain(FaultKind::kHostBefore);
  EXPECT_TRUE(JudgeOf(host, {Of(VerdictKind::kRankNonCommHang, Level::kWarning, host.faults[0].rank)}).is_right());
  const Scenario mismatch = Plain(FaultKind::kMismatch);
  EXPECT_TRUE(
      JudgeOf(mismatch, {Of(VerdictKind::kCollectiveMismatch, Level::kWarning, mismatch.faults[0].rank)}).is_right());
}

TEST(JudgeTest, AnotherRankAnotherKindAndTooHighALevelAreWrong) {
  const Scenario host = Plain(FaultKind::kHostBefore);
  const uint32_t guilty = host.faults[0].rank, innocent = guilty == 0 ? 1 : guilty - 1;
  for (const Verdict& wrong : {Of(VerdictKind::kRankNonCommHang, Level::kWarning, innocent),
                               Of(VerdictKind::kRankCommHang, Level::kWarning, guilty),
                               Of(VerdictKind::kRankNonCommHang, Level::kError, guilty),
                               Of(VerdictKind::kCollectiveMismatch, Level::kWarning, guilty),
                               Of(VerdictKind::kCyclicWait, Level::kWarning, guilty)}) {
    EXPECT_FALSE(JudgeOf(host, {wrong}).false_accusations.empty()) << c4d::Name(wrong.kind);
  }
}

TEST(JudgeTest, InAHealthyJobEverybodyIsAccusedWronglyAtSomeTime) {
  const std::vector<Verdict> verdicts = {Of(VerdictKind::kRankNonCommHang, Level::kWarning, 1)};
  for (uint64_t seed = 2; seed < 20; seed += 2) {
    EXPECT_FALSE(JudgeOf(DrawScenario(seed), verdicts).false_accusations.empty()) << "seed " << seed;
    EXPECT_TRUE(JudgeOf(DrawScenario(seed), {}).is_right()) << "seed " << seed;
  }
}

TEST(TallyTest, TooFewNamedOrOneHealthyAccusedIsNotGoodEnough) {
  SeedResult right;
  right.scenario.expects_hang = true;
  right.judgement.required = 1;
  SeedResult missed = right, accused;
  missed.judgement.misses = {"one"};
  accused.judgement.false_accusations = {"one"};
  Tally tally;
  for (int i = 0; i < 99; ++i) tally.Add(right);
  EXPECT_TRUE(tally.is_good());
  tally.Add(missed);
  EXPECT_TRUE(tally.is_good()) << "99 of 100";
  Tally two = tally;
  for (int i = 0; i < 3; ++i) two.Add(missed);
  EXPECT_FALSE(two.is_good());
  tally.Add(accused);
  EXPECT_FALSE(tally.is_good());
}

}  // namespace
}  // namespace aimaster::sim::collectives
