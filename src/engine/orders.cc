#include "engine/orders.h"

#include <algorithm>
#include <map>

#include "core/roles.h"

namespace aimaster {

AcquireNodes AcquireOrder(const JobState& job) {
  AcquireNodes order;
  for (const auto& [index, node] : job.nodes) {
    if (!node.joined && !node.lost) order.nodes.push_back(index);
    if (node.isolated) order.avoid.push_back(index);
  }
  return order;
}

bool HoldsPorts(const JobState& job) { return job.start_retries == 0 && job.port_refusals == 0; }

std::vector<ReservePort> ReserveOrders(const JobState& job) {
  const ReservePort one{.reservation = job.reservation, .node = job.instances.front().node, .hold = HoldsPorts(job)};
  if (!HasAddress(job.spec, job.instances.front().role)) return {one};
  std::map<NodeIndex, uint32_t> counts;
  for (const InstanceState& instance : job.instances) {
    if (HasAddress(job.spec, instance.role) && instance.port == 0) ++counts[instance.node];
  }
  std::vector<ReservePort> orders;
  for (const auto& [node, count] : counts) {
    orders.push_back({.reservation = job.reservation, .node = node, .hold = one.hold, .count = count});
  }
  return orders;
}

StartInstance StartOrder(const JobState& job, InstanceIndex index) {
  const InstanceState& instance = job.instances[Value(index)];
  return {.instance = index,
          .attempt = instance.attempt,
          .node = instance.node,
          .round = job.round,
          .restart_count = job.restarts + (instance.own ? instance.own->restarts : 0),
          .master_address = job.master_address,
          .master_port = job.master_port};
}

StopInstance StopOrder(const JobState& job, InstanceIndex index) {
  const InstanceState& instance = job.instances[Value(index)];
  const bool alone_at_once = RenewalOf(instance) == Renewal::kStopping && instance.own->stop_at_once;
  return {.instance = index,
          .attempt = instance.attempt,
          .node = instance.node,
          .at_once = job.stop_at_once || alone_at_once};
}

CollectEvidence CollectOrder(const JobState& job) {
  return {.collection = job.collection, .nodes = {job.collecting_from.begin(), job.collecting_from.end()}};
}

CaptureStacks CaptureOrder(const JobState& job) { return {.capture = job.stacks.number, .reason = job.stacks.reason}; }

JudgeFailure JudgeOrder(const JobState& job) {
  const bool is_of_all = std::ranges::any_of(job.instances, [&job](const InstanceState& instance) {
    return RenewalOf(instance) == Renewal::kFailed && !RestartsAlone(job.spec, instance.role);
  });
  const bool apart = IsAsync(job) && !IsMpi(job.spec) && !is_of_all;
  return {.judgement_number = job.judgement_number, .apart = apart};
}

}  // namespace aimaster
