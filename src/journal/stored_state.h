// StoredState: the engine's whole knowledge of a job as rows, so that a master goes on from what its predecessor knew,
// and not from what it would make of the same inputs itself.
//
// Instances, nodes, rounds, records and failures have rows of their own, which are written when they change. The rest
// is small and is written with every commit. What follows from those (all counts) is made again.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/error.h"
#include "engine/job_state.h"

namespace aimaster {

// What has no row of its own.
struct StateRest {
  JobProgress progress;
  std::vector<NodeIndex> placement;  // empty in journals before engine 3: where the first instance of each slot is
  std::string ranks_ended;           // hexadecimal digits of four ranks each, the first rank in the lowest bit
  // How many rows of the other kinds belong to it; what lies beyond was left by an earlier failure.
  uint32_t instances = 0, nodes = 0, rounds = 0, records = 0, failures = 0;
  bool operator==(const StateRest&) const = default;
};

struct StoredState {
  StateRest rest;
  std::vector<InstanceState> instances;
  std::map<NodeIndex, NodeState> nodes;
  std::vector<RoundState> rounds;
  std::vector<RestartRecord> records;
  std::vector<RankFailure> failures;
  bool operator==(const StoredState&) const = default;
};

StateRest RestOf(const JobState& job);
StoredState StoreState(const JobState& job);
// Without the tallies, which the engine that goes on from it counts. Refuses what does not fit together: a row is
// missing, or speaks of something that is not there.
Result<JobState> RestoreState(const JobSpec& spec, StoredState stored);

}  // namespace aimaster
