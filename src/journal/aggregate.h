// What fails, where, and how often: the details of all restart records, grouped by fault, node and instance.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "journal/job_reader.h"

namespace aimaster {

struct AggregatedFault {
  std::string fault;  // rule code
  std::string node_name;
  std::string instance_name;
  uint32_t count = 0;  // details; `roots` of them were a root cause, the others a consequence
  uint32_t roots = 0;
  uint32_t isolations = 0;      // how often its node was isolated for it
  std::set<uint32_t> ranks;     // of the instance
  std::set<std::string> codes;  // exit statuses; the fault's name where there was none
  std::set<ErrorSource> sources;
  std::string message;         // the last one
  Wall first_time, last_time;  // of the restarts
};

// The instances that failed, one entry each: what its first failed rank says, the roots first. Of a record that keeps
// several ranks of an instance, the one that tells most.
std::vector<FailureDetail> InstanceDetails(const RestartRecord& record);

// The names in which listings and scripts speak of a detail.
std::string NodeNameOf(const JobSnapshot& snapshot, NodeIndex node);
std::string InstanceNameOf(const JobSnapshot& snapshot, InstanceIndex instance);
bool WasIsolated(const RestartRecord& record, const FailureDetail& detail);
// The exit status where a process's exit is the cause; where none is, the fault's name.
std::string CodeText(const FailureDetail& detail);

// Those that were root causes most often first, then the most frequent.
std::vector<AggregatedFault> AggregateFaults(const JobSnapshot& snapshot);

}  // namespace aimaster
