// Tallies: counts over a job's instances and ranks, kept while they change. An input then costs what it changes, not
// what the job is large: ten thousand instances that start or end would otherwise each be asked ten thousand times
// whether they all have.
//
// They follow from the rest of the state. They are never stored; CountAll makes them again.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/ids.h"
#include "core/time.h"

namespace aimaster {

struct JobState;

// Failures on one node that any detector must see as one kind: the same way to end, the same telling rules.
struct FailureClass {
  uint32_t kept = 0;               // in JobState::failures
  std::pair<Wall, Rank> earliest;  // of those
  bool operator==(const FailureClass&) const = default;
};

struct Tallies {
  uint32_t live = 0, started = 0, ready = 0, succeeded = 0;  // instances
  uint32_t work_succeeded = 0;                               // of those that count for the job's success
  uint32_t work_done = 0;                                    // of these, whose ranks have all ended with 0
  uint32_t portless = 0;                                     // that have an address of their own, and no port yet
  uint32_t waiting = 0;                                      // for a node, to be restarted alone
  std::set<std::pair<Monotonic, InstanceIndex>> deadlines;   // of instances
  uint32_t ranks_ended = 0;
  std::map<std::string, FailureClass> failure_classes;
  uint64_t failure_bytes = 0;  // of the texts of all failures that are kept
  bool operator==(const Tallies&) const = default;
};

Tallies CountAll(const JobState& job);

}  // namespace aimaster
