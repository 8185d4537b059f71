#include "engine/layout.h"

#include <algorithm>
#include <map>
#include <optional>

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

std::vector<InstanceIndex> InstancesOfSlot(const JobSpec& spec, uint32_t slot) {
  const uint64_t count = InstanceCount(spec), slots = SlotCount(spec);
  const auto first_of = [&](uint64_t which) { return (which * count + slots - 1) / slots; };  // SlotOf, the other way
  std::vector<InstanceIndex> instances;
  for (uint64_t i = first_of(slot); i < first_of(uint64_t{slot} + 1); ++i) {
    instances.push_back(InstanceIndex{static_cast<uint32_t>(i)});
  }
  return instances;
}

std::optional<RankPlace> PlaceOf(const JobState& job, Rank rank) {
  if (Value(rank) >= job.instance_of_rank.size()) return std::nullopt;
  const InstanceIndex instance = job.instance_of_rank[Value(rank)];
  const NodeIndex node = job.instances[Value(instance)].node;
  return job.nodes.contains(node) ? std::optional(RankPlace{instance, node}) : std::nullopt;
}

std::vector<NodePlace> PlacesOnNodes(const JobState& job) {
  struct NodeInUse {
    uint32_t node_rank = 0;
    uint32_t ranks = 0;
  };
  std::map<NodeIndex, NodeInUse> in_use;  // numbered by their smallest rank, since instances are in rank order
  std::vector<NodePlace> places(job.instances.size());
  const auto place = [&](size_t i, std::optional<uint32_t> first_local_rank) {
    const InstanceState& instance = job.instances[i];
    const auto [node, is_new] = in_use.try_emplace(instance.node, static_cast<uint32_t>(in_use.size()));
    places[i].node_rank = node->second.node_rank;
    places[i].first_local_rank = first_local_rank.value_or(node->second.ranks);
    node->second.ranks = std::max(node->second.ranks, places[i].first_local_rank + instance.ranks);
  };
  const auto newcomer_at = [&job](size_t i) {
    return job.instances[i].own ? job.instances[i].own->first_local_rank : std::nullopt;
  };
  for (size_t i = 0; i < places.size(); ++i) {
    if (!newcomer_at(i)) place(i, std::nullopt);
  }
  for (size_t i = 0; i < places.size(); ++i) {
    if (const std::optional<uint32_t> first = newcomer_at(i)) place(i, first);
  }
  for (size_t i = 0; i < places.size(); ++i) {
    places[i].local_world_size = in_use.at(job.instances[i].node).ranks;
    places[i].node_count = static_cast<uint32_t>(in_use.size());
  }
  return places;
}

}  // namespace aimaster
