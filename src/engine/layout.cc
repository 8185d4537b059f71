#include "engine/layout.h"

#include <algorithm>

namespace aimaster {
namespace {

uint32_t InstanceCount(const JobSpec& spec) {
  uint32_t count = 0;
  for (const RoleSpec& role : spec.roles) count += role.count;
  return count;
}

}  // namespace

std::vector<InstanceState> LayOutInstances(const JobSpec& spec) {
  std::vector<InstanceState> instances;
  uint32_t next_rank = 0;
  for (const RoleSpec& role : spec.roles) {
    for (uint32_t i = 0; i < role.count; ++i) {
      InstanceState instance;
      instance.name = InstanceName(spec.id, role.role, i);
      instance.role = role.role;
      instance.index_in_role = i;
      instance.first_rank = Rank{next_rank};
      instance.ranks = role.ranks_per_instance;
      next_rank += role.ranks_per_instance;
      instances.push_back(std::move(instance));
    }
  }
  return instances;
}

uint32_t WorldSize(const JobSpec& spec) {
  uint32_t size = 0;
  for (const RoleSpec& role : spec.roles) size += role.count * role.ranks_per_instance;
  return size;
}

uint32_t SlotCount(const JobSpec& spec) { return std::max(1u, std::min(spec.local_nodes, InstanceCount(spec))); }

uint32_t SlotOf(const JobSpec& spec, InstanceIndex instance) {
  const uint64_t count = InstanceCount(spec);
  return static_cast<uint32_t>(uint64_t{Value(instance)} * SlotCount(spec) / std::max<uint64_t>(count, 1));
}

NodePlace PlaceOnNode(const JobState& job, InstanceIndex instance) {
  const NodeIndex own = job.instances[Value(instance)].node;
  NodePlace place;
  std::vector<NodeIndex> in_use;  // by their smallest rank, since instances are in rank order
  for (size_t i = 0; i < job.instances.size(); ++i) {
    const InstanceState& other = job.instances[i];
    if (std::ranges::find(in_use, other.node) == in_use.end()) in_use.push_back(other.node);
    if (other.node != own) continue;
    if (i < Value(instance)) place.first_local_rank += other.ranks;
    place.local_world_size += other.ranks;
  }
  place.node_rank = static_cast<uint32_t>(std::ranges::find(in_use, own) - in_use.begin());
  place.node_count = static_cast<uint32_t>(in_use.size());
  return place;
}

}  // namespace aimaster
