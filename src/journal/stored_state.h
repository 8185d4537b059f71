// StoredState: the engine's whole knowledge of a job as rows, so that a master goes on from what its predecessor knew,
// and not from what it would make of the same inputs itself.
//
// Instances, nodes, rounds, records and failures have rows of their own, which are written when they change. The rest
// is small and is written with every commit. What follows from those (who is placed where, all counts) is made again.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/error.h"
#include "engine/job_state.h"

namespace aimaster {

// What changes with nearly every input. Field by field as in JobState.
struct StateRest {
  Epoch epoch{};
  JobStatus status = JobStatus::kCreating;
  Phase phase = Phase::kNew;
  StopPurpose stop_purpose = StopPurpose::kFail;
  bool stop_at_once = false;
  Round round{};
  uint32_t restarts = 0;
  uint32_t start_retries = 0;
  std::string reason_code;
  std::string reason_message;
  int exit_code = 0;
  Moment submit_time;
  std::optional<Wall> running_time;
  std::optional<Wall> end_time;
  std::string master_address;
  uint16_t master_port = 0;
  uint32_t reservation = 0;
  uint32_t port_refusals = 0;
  uint32_t collection = 0;
  uint32_t judgement_number = 0;
  std::set<NodeIndex> collecting_from;
  std::set<Rank> dumping_core;
  uint32_t failures_dropped = 0;
  std::map<std::string, uint32_t> same_error;
  std::map<std::string, uint32_t> quick_failures;
  std::set<InstanceIndex> failed_workers;
  std::vector<StageTime> pending_stages;
  Moment failure_began;
  Monotonic stop_began;
  uint32_t stop_escalations = 0;
  Deadlines deadlines;

  std::string ranks_ended;  // hexadecimal digits of four ranks each, the first rank in the lowest bit
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
// Refuses what does not fit together: a row is missing, or speaks of something that is not there.
Result<JobState> RestoreState(const JobSpec& spec, StoredState stored);

}  // namespace aimaster
