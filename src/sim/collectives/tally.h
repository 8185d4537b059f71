// Tally: how often the verdicts were right, per kind of fault and over healthy jobs.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/collectives/fault.h"
#include "sim/collectives/seed_run.h"

namespace aimaster::sim::collectives {

inline constexpr double kRightAtLeast = 0.98;  // of the seeds with a culprit who has to be named

class Tally {
 public:
  void Add(const SeedResult& result);

  // Enough of the culprits are named, nobody is accused in a job that does not hang, and what failed before is right.
  bool is_good() const;
  std::string Table() const;

 private:
  struct Row {
    uint64_t seeds = 0, demanding = 0, right = 0, missed = 0, accused = 0;
  };
  std::array<Row, kFaultKinds> by_kind_;
  Row hangs_, calm_;  // calm: nothing hangs
  uint64_t events_ = 0, observations_ = 0;
  Duration analysed_{};
};

}  // namespace aimaster::sim::collectives
