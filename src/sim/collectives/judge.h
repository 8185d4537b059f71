// Judge: whether the verdicts on an observation are right, given what really happened (fault.h says what is required).
//
// Two questions, counted apart. Is anybody accused wrongly: a rank that neither failed nor keeps others for longer than
// the timeout, a kind that the observer could have known to be another, a level that is too high? And is everybody
// named who has to be? A healthy rank that others do wait for longer than the timeout, as one that writes a checkpoint
// for a minute, may be named in a Warning: that is what it is for.
#pragma once

#include <string>
#include <vector>

#include "c4d/observation.h"
#include "c4d/verdict.h"
#include "sim/collectives/cluster.h"
#include "sim/collectives/scenario.h"
#include "sim/collectives/truth.h"

namespace aimaster::sim::collectives {

struct Judgement {
  std::vector<std::string> false_accusations;
  std::vector<std::string> misses;
  uint32_t required = 0;  // culprits that had to be named
  bool is_right() const { return false_accusations.empty() && misses.empty(); }
};

// What is known when the observation is taken.
struct Circumstances {
  const Scenario& scenario;
  const Cluster& cluster;
  const c4d::Observation& observation;
  // At the begin and at the end of the time over which it was collected; the same where that was a moment.
  Truth before, after;
};

Judgement Judge(const Circumstances& circumstances, const std::vector<c4d::Verdict>& verdicts);

}  // namespace aimaster::sim::collectives
