// Layout: which ranks an instance holds and where it sits, as plain arithmetic over the job spec.
//
// Instances are cut into blocks, one per slot, and a slot outlives the node that fills it: a replacement node takes the
// whole block over, so ranks keep their numbers and neighbours. Assigning ranks by order of arrival, as elastic
// launchers do, was rejected: state that a rank keeps on its node would be lost at every restart.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/job_state.h"

namespace aimaster {

// Instances in role order with their names and ranks; nothing is placed yet.
std::vector<InstanceState> LayOutInstances(const JobSpec& spec);

uint32_t WorldSize(const JobSpec& spec);
// How many slots the instances are spread over: one per node, never more than there are instances.
uint32_t SlotCount(const JobSpec& spec);
uint32_t SlotOf(const JobSpec& spec, InstanceIndex instance);
// In order; they are neighbours.
std::vector<InstanceIndex> InstancesOfSlot(const JobSpec& spec, uint32_t slot);

// Where a rank sits now; none where the job has no such rank, or has not placed it.
std::optional<RankPlace> PlaceOf(const JobState& job, Rank rank);

// A rank's place among the ranks of its node, counted over instances as torchrun does.
struct NodePlace {
  uint32_t first_local_rank = 0;  // of the instance's first rank
  uint32_t local_world_size = 0;
  uint32_t node_rank = 0;   // the node's number among the nodes in use, by their smallest rank
  uint32_t node_count = 0;  // nodes in use
  bool operator==(const NodePlace&) const = default;
};
// Of all instances at once, by InstanceIndex. Who came later to a node on which others run is counted behind them, so
// that nobody's number changes.
std::vector<NodePlace> PlacesOnNodes(const JobState& job);

}  // namespace aimaster
