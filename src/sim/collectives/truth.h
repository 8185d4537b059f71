// Truth: who really waits for whom, which only the simulator knows.
#pragma once

#include <cstdint>
#include <vector>

#include "core/time.h"
#include "sim/collectives/cluster.h"
#include "sim/collectives/scenario.h"

namespace aimaster::sim::collectives {

struct RankTruth {
  bool waits = false;       // its device, or its host inside, is in an operation to which others have not come
  bool has_called = false;  // it has called one that it is missed in: its device is late, and not its host
  bool has_outstanding = false;
  Duration missed{};       // for how long a rank that is observed has waited for it
  Duration missed_seen{};  // the same, by operations that are kept, and as long as the observer can be sure of
  Duration missed_call{};  // since an observed rank called what this one has not called
  bool is_missed() const { return missed > Duration::zero(); }
  // It keeps others, and nobody keeps it. A healthy rank is one too, for a moment.
  bool is_root() const { return is_missed() && !waits; }
};

struct Truth {
  std::vector<RankTruth> ranks;
  Duration longest_wait{};  // of a rank that is observed, in an operation that is not under way
  Duration longest_call{};  // since one that has not completed was called by such a rank
};

Truth LookAt(const Cluster& cluster, const Sight& sight);

}  // namespace aimaster::sim::collectives
