// Goodput: how much of a job's time went into work that counts, and what took the rest. Pure: views in, sums out.
//
// The time from submission until now is cut at three kinds of moments: when a round is ready, when its last checkpoint
// was told, and when it failed.
//
//   submitted    ready          checkpoint       failed        ready                  end
//      ├──starting──┼──productive──┼──to be redone──┼──restarting──┼──productive────────┤
//                                  └────── lost to what failed ───┘
//
// What ran after the last checkpoint is done once more by the next round. A job that tells no checkpoints may have some
// all the same; of it nothing is known, and all that it ran counts as productive.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "journal/job_reader.h"

namespace aimaster {

// What the failures of one kind cost.
struct LostTime {
  std::string cause;  // a fault of the taxonomy; "starting" for the first start
  uint32_t times = 0;
  Duration restarting{};  // from the failure, or the submission, until all were ready
  Duration redone{};      // that ran, and was not saved
  Duration total() const { return restarting + redone; }
  bool operator==(const LostTime&) const = default;
};

struct Goodput {
  Duration wall{};
  Duration productive{};
  bool knows_checkpoints = false;
  std::vector<LostTime> lost;  // the costliest first
  double share() const;        // of the time that was productive, 0 to 1; 1 where no time has passed
};

// `now` counts for a job that has not ended.
Goodput MeasureGoodput(const JobSnapshot& snapshot, Wall now);

}  // namespace aimaster
