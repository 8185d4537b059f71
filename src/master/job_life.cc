#include "master/job_life.h"

#include <algorithm>

namespace aimaster {

std::set<NodeIndex> NodesWithRanks(const JobState& job) {
  std::set<NodeIndex> nodes;
  for (const InstanceState& instance : job.instances) {
    if (instance.live) nodes.insert(instance.node);
  }
  return nodes;
}

std::optional<InstanceIndex> FindLive(const JobState& job, NodeIndex node, uint32_t instance, uint32_t attempt) {
  if (instance >= job.instances.size()) return std::nullopt;
  const InstanceState& state = job.instances[instance];
  const bool is_it = state.live && state.node == node && Value(state.attempt) == attempt;
  return is_it ? std::optional(InstanceIndex{instance}) : std::nullopt;
}

std::optional<Monotonic> RanksUp(const JobState& job) {
  if (job.phase != Phase::kRunning || job.tallies.started != job.instances.size()) return std::nullopt;
  const std::vector<StageTime>& stages = job.rounds.back().stages;
  const auto ready = std::ranges::find(stages.rbegin(), stages.rend(), Stage::kReady, &StageTime::stage);
  return ready == stages.rend() ? std::nullopt : std::optional(ready->start.monotonic);
}

}  // namespace aimaster
