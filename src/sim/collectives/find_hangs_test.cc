// FindHangs over some dozens of simulated trainings; ./dev sim collectives runs thousands.
#include <gtest/gtest.h>

#include "c4d/hangs.h"
#include "sim/collectives/seed_run.h"
#include "sim/collectives/tally.h"

namespace aimaster::sim::collectives {
namespace {

TEST(FindHangsTest, TheRightRanksAreNamedAndNobodyElse) {
  Tally tally;
  for (uint64_t seed = 1; seed <= 80; ++seed) tally.Add(RunSeed(seed, c4d::FindHangs, false));
  EXPECT_TRUE(tally.is_good()) << tally.Table();
}

}  // namespace
}  // namespace aimaster::sim::collectives
