// Trainings that are run until they hang, with a fault of each kind at each rank and each place of its program: who is
// at fault is known, so nobody else may be named.
#include <gtest/gtest.h>

#include "c4d/c4d_test_support.h"
#include "c4d/simulated_job.h"

namespace aimaster::c4d {
namespace {

struct Tries {
  int right = 0, silent = 0, all = 0;
};

// Every fault of the kind in jobs of several shapes. `judge` says whether the verdicts are right; nothing at all is
// counted, and anything else fails.
template <typename Judge>
Tries TryAll(SimulatedFault fault, bool tells_start, Judge judge) {
  Tries count;
  for (SimulatedLayout layout :
       {SimulatedLayout{.tensor = 2, .data = 2, .pipeline = 2}, SimulatedLayout{.tensor = 1, .data = 3, .pipeline = 3},
        SimulatedLayout{.tensor = 4, .data = 2, .pipeline = 1},
        SimulatedLayout{.tensor = 2, .data = 2, .pipeline = 2, .overlaps = true},
        SimulatedLayout{.tensor = 2, .data = 3, .pipeline = 1, .overlaps = true},
        SimulatedLayout{.tensor = 1, .data = 2, .pipeline = 3, .chunks = 2}}) {
    layout.tells_start = tells_start;
    layout.steps = 2;
    for (const uint32_t ahead : {1u, 3u, 12u, 50u}) {
      layout.ahead = ahead;
      for (uint32_t rank = 0; rank < layout.ranks(); ++rank) {
        const uint32_t length = SimulatedJob(layout).program_length(rank);
        for (uint32_t at = rank % 2; at < length; at += 2) {
          SimulatedJob simulated(layout);
          simulated.Break(rank, fault, at);
          const std::vector<Verdict> verdicts = FindHangs(simulated.Run(30s), {});
          ++count.all;
          if (verdicts.empty()) {
            ++count.silent;
          } else if (judge(verdicts, rank)) {
            ++count.right;
          } else {
            ADD_FAILURE() << layout.tensor << "x" << layout.data << "x" << layout.pipeline << " ahead " << ahead
                          << ": rank " << rank << " fails at " << at << "\n"
                          << Accused(verdicts) << "\n"
                          << Describe(verdicts);
            return count;
          }
        }
      }
    }
  }
  return count;
}

TEST(SimulatedHangsTest, AProgramThatStandsStillIsNamedAndNobodyElse) {
  const Tries count = TryAll(SimulatedFault::kHost, false, [](const std::vector<Verdict>& verdicts, uint32_t rank) {
    return Accused(verdicts) == "RankNonCommHang " + std::to_string(rank);
  });
  EXPECT_EQ(count.silent, 0);
}

// Alone where somebody has completed what it has not, and that does not go from rank to rank: what goes from rank to
// rank has no numbers that both sides know, so its next looks like its last.
TEST(SimulatedHangsTest, ADeviceThatIsLostIsNamedAndNobodyElse) {
  int in_group = 0;
  const Tries count =
      TryAll(SimulatedFault::kCompletions, false, [&](const std::vector<Verdict>& verdicts, uint32_t rank) {
        if (Accused(verdicts) == "RankCommHang " + std::to_string(rank)) return true;
        ++in_group;
        return verdicts.size() == 1 && verdicts[0].is_group && AllAccused(verdicts).contains(rank);
      });
  EXPECT_EQ(count.silent, 0);
  EXPECT_LT(in_group * 10, count.all);
}

TEST(SimulatedHangsTest, OfADeviceThatStandsStillItsGroupIsNamed) {
  const Tries count = TryAll(SimulatedFault::kDevice, false, [](const std::vector<Verdict>& verdicts, uint32_t rank) {
    return verdicts.size() == 1 && verdicts[0].kind == VerdictKind::kRankCommHang &&
           verdicts[0].is_group == (verdicts[0].ranks.size() > 1) && AllAccused(verdicts).contains(rank);
  });
  EXPECT_EQ(count.silent, 0);
}

TEST(SimulatedHangsTest, ADeviceThatStandsStillIsNamedWhereItIsToldWhatWasBegun) {
  const Tries count = TryAll(SimulatedFault::kDevice, true, [](const std::vector<Verdict>& verdicts, uint32_t rank) {
    return Accused(verdicts) == "RankNonCommHang " + std::to_string(rank);
  });
  EXPECT_EQ(count.silent, 0);
}

}  // namespace
}  // namespace aimaster::c4d
