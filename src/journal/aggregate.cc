#include "journal/aggregate.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace aimaster {

std::string NodeNameOf(const JobSnapshot& snapshot, NodeIndex node) {
  const auto found = snapshot.nodes.find(node);
  return found == snapshot.nodes.end() ? "" : found->second.name;
}

std::string InstanceNameOf(const JobSnapshot& snapshot, InstanceIndex instance) {
  return Value(instance) < snapshot.instances.size() ? snapshot.instances[Value(instance)].name : "";
}

bool WasIsolated(const RestartRecord& record, const FailureDetail& detail) {
  return record.isolated_node && detail.node == record.judgement.root_node;
}

std::string CodeText(const FailureDetail& detail) {
  return detail.error_code != 0 ? std::to_string(detail.error_code) : detail.fault;
}

std::vector<FailureDetail> InstanceDetails(const RestartRecord& record) {
  std::vector<FailureDetail> details;
  std::set<InstanceIndex> seen;
  for (const bool is_root : {true, false}) {  // they are in this order, but for who kept the others waiting
    for (const FailureDetail& detail : record.judgement.details) {
      if (detail.is_root == is_root && seen.insert(detail.instance).second) details.push_back(detail);
    }
  }
  // One that only followed a failure that has a record of its own.
  if (record.judgement.is_consequence) {
    for (FailureDetail& detail : details) detail.is_root = false;
  }
  return details;
}

std::vector<AggregatedFault> AggregateFaults(const JobSnapshot& snapshot) {
  std::map<std::tuple<std::string, NodeIndex, InstanceIndex>, AggregatedFault> faults;
  for (const RestartRecord& record : snapshot.records) {
    for (const FailureDetail& detail : InstanceDetails(record)) {
      AggregatedFault& fault = faults[{detail.fault, detail.node, detail.instance}];
      if (fault.count == 0) {
        fault.fault = detail.fault;
        fault.node_name = NodeNameOf(snapshot, detail.node);
        fault.instance_name = InstanceNameOf(snapshot, detail.instance);
        fault.first_time = record.restart_time.wall;
      }
      ++fault.count;
      if (detail.is_root) ++fault.roots;
      if (WasIsolated(record, detail)) ++fault.isolations;
      fault.ranks.insert(Value(detail.rank));
      fault.codes.insert(CodeText(detail));
      fault.sources.insert(detail.source);
      fault.message = detail.message;
      fault.last_time = record.restart_time.wall;
    }
  }
  std::vector<AggregatedFault> list;
  for (auto& [key, fault] : faults) list.push_back(std::move(fault));
  const auto key = [](const AggregatedFault& fault) {
    return std::tuple(UINT32_MAX - fault.roots, UINT32_MAX - fault.count, fault.fault, fault.node_name,
                      fault.instance_name);
  };
  std::ranges::sort(list, [&](const auto& a, const auto& b) { return key(a) < key(b); });
  return list;
}

}  // namespace aimaster
