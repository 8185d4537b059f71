// Codec: which fields of the job's types are stored, and under which names. The names are a promise to every journal
// that was ever written: they may be added to, never changed.
#pragma once

#include <string>
#include <string_view>

#include "engine/engine.h"
#include "journal/json_fields.h"

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

Result<JobSummary> DecodeJobSummary(std::string_view text);
Result<InstanceState> DecodeInstance(std::string_view text);
Result<NodeState> DecodeNode(std::string_view text);
Result<RoundState> DecodeRound(std::string_view text);
Result<RestartRecord> DecodeRecord(std::string_view text);
Result<Decision> DecodeDecision(std::string_view text);
Result<JobEvent> DecodeEvent(std::string_view text);

}  // namespace aimaster
