// What those who watch a running job want to know of its state.
#pragma once

#include <optional>
#include <set>

#include "engine/job_state.h"

namespace aimaster {

std::set<NodeIndex> NodesWithRanks(const JobState& job);
// When the last rank's program was executed: the stage `ready` begins there. None: not all of them run.
std::optional<Monotonic> RanksUp(const JobState& job);

}  // namespace aimaster
