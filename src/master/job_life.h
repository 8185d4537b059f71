// What those who watch a running job want to know of its state.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "engine/job_state.h"

namespace aimaster {

std::set<NodeIndex> NodesWithRanks(const JobState& job);
// Of an attempt that an agent speaks of, its instance; none: it does not run there, or not any more.
std::optional<InstanceIndex> FindLive(const JobState& job, NodeIndex node, uint32_t instance, uint32_t attempt);
// When the last rank's program was executed: the stage `ready` begins there. None: not all of them run.
std::optional<Monotonic> RanksUp(const JobState& job);

}  // namespace aimaster
