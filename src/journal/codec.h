// Codec: the job's types as lines of JSON, one per row of the journal. Protocol buffers were rejected here: a journal
// is read by people too, with nothing but sqlite3 at hand, when all else has failed. The fields are in job_fields.h.
//
// Decoding takes any bytes: it answers with an error, never with an exception or a value outside its type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"
#include "engine/engine.h"
#include "journal/stored_state.h"

namespace aimaster {

// The readable summary of a job: one row.
struct JobSummary {
  JobStatus status = JobStatus::kCreating;
  Epoch epoch{};
  Round round{};
  uint32_t restarts = 0;
  std::string reason_code;
  std::string reason_message;
  int exit_code = 0;
  Wall submit_time;
  std::optional<Wall> running_time;
  std::optional<Wall> end_time;
  uint16_t master_port = 0;
  bool operator==(const JobSummary&) const = default;
};
JobSummary Summarize(const JobState& job);

std::string EncodeJobSpec(const JobSpec& spec);
Result<JobSpec> DecodeJobSpec(std::string_view text);
// {"kind": "RankFailed", "at": {…}, …}
std::string EncodeInput(const Input& input);
Result<Input> DecodeInput(std::string_view text);
std::string_view EventKind(const Event& event);

std::string Encode(const JobSummary& summary);
std::string Encode(const InstanceState& instance);
std::string Encode(const NodeState& node);
std::string Encode(const RoundState& round);
std::string Encode(const RestartRecord& record);
std::string Encode(const Decision& decision);
std::string Encode(const JobEvent& event);
std::string Encode(const RankFailure& failure);
std::string Encode(const StateRest& rest);
std::string Encode(const StoredState& state);

Result<JobSummary> DecodeJobSummary(std::string_view text);
Result<InstanceState> DecodeInstance(std::string_view text);
Result<NodeState> DecodeNode(std::string_view text);
Result<RoundState> DecodeRound(std::string_view text);
Result<RestartRecord> DecodeRecord(std::string_view text);
Result<Decision> DecodeDecision(std::string_view text);
Result<JobEvent> DecodeEvent(std::string_view text);
Result<RankFailure> DecodeFailure(std::string_view text);
Result<StateRest> DecodeStateRest(std::string_view text);
Result<StoredState> DecodeStoredState(std::string_view text);

}  // namespace aimaster
