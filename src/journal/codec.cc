#include "journal/codec.h"

#include <array>

#include "core/quote.h"
#include "journal/job_fields.h"

namespace aimaster {

namespace {

// In the order of Event.
constexpr std::array<std::string_view, std::variant_size_v<Event>> kEventKinds{
    "JobSubmitted",      "MasterStarted",  "NodeJoined",    "NodeDenied",
    "NodeLost",          "PortReserved",   "PortRefused",   "InstanceStarted",
    "InstanceReady",     "RankSucceeded",  "RankFailed",    "InstanceEnded",
    "EvidenceCollected", "FailureJudged",  "StopRequested", "RetryableErrorsAdded",
    "StacksRequested",   "StacksCaptured", "HangFound",     "CommunicationJudged",
    "CustomMessageSent", "CheckpointTold", "Tick"};

template <size_t kIndex = 0>
Result<Event> DecodeEventOfKind(std::string_view kind, const json& from) {
  if constexpr (kIndex == std::variant_size_v<Event>) {
    return Fail(ErrorKind::kVersion, "unknown input " + Quoted(kind));
  } else if (kind == kEventKinds[kIndex]) {
    auto event = FromJson<std::variant_alternative_t<kIndex, Event>>(from);
    if (!event) return std::unexpected(event.error());
    return Event(std::in_place_index<kIndex>, std::move(*event));
  } else {
    return DecodeEventOfKind<kIndex + 1>(kind, from);
  }
}

}  // namespace

JobSummary Summarize(const JobState& job) {
  return {.status = job.status,
          .epoch = job.epoch,
          .round = job.round,
          .restarts = job.restarts,
          .reason_code = job.reason_code,
          .reason_message = job.reason_message,
          .exit_code = job.exit_code,
          .submit_time = job.submit_time.wall,
          .running_time = job.running_time,
          .end_time = job.end_time,
          .master_port = job.master_port};
}

std::string_view EventKind(const Event& event) { return kEventKinds[event.index()]; }

std::string EncodeInput(const Input& input) {
  json encoded = std::visit([](const auto& event) { return ToJson(event); }, input.event);
  encoded["kind"] = EventKind(input.event);
  encoded["at"] = ToJson(input.at);
  return ToText(encoded);
}

Result<Input> DecodeInput(std::string_view text) {
  const json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object() || !parsed.contains("kind") || !parsed["kind"].is_string() || !parsed.contains("at")) {
    return Fail(ErrorKind::kEnvironment, "not an input");
  }
  const Result<Moment> at = FromJson<Moment>(parsed["at"]);
  if (!at) return std::unexpected(at.error());
  Result<Event> event = DecodeEventOfKind(parsed["kind"].get_ref<const std::string&>(), parsed);
  if (!event) return std::unexpected(event.error());
  return Input{*at, std::move(*event)};
}

std::string EncodeJobSpec(const JobSpec& spec) { return ToText(ToJson(spec)); }
Result<JobSpec> DecodeJobSpec(std::string_view text) { return FromText<JobSpec>(text); }

std::string Encode(const JobSummary& summary) { return ToText(ToJson(summary)); }
std::string Encode(const InstanceState& instance) { return ToText(ToJson(instance)); }
std::string Encode(const NodeState& node) { return ToText(ToJson(node)); }
std::string Encode(const RoundState& round) { return ToText(ToJson(round)); }
std::string Encode(const RestartRecord& record) { return ToText(ToJson(record)); }
std::string Encode(const Decision& decision) { return ToText(ToJson(decision)); }
std::string Encode(const JobEvent& event) { return ToText(ToJson(event)); }
std::string Encode(const RankFailure& failure) { return ToText(ToJson(failure)); }
std::string Encode(const StateRest& rest) { return ToText(ToJson(rest)); }
std::string Encode(const StoredState& state) { return ToText(ToJson(state)); }

Result<JobSummary> DecodeJobSummary(std::string_view text) { return FromText<JobSummary>(text); }
Result<InstanceState> DecodeInstance(std::string_view text) { return FromText<InstanceState>(text); }
Result<NodeState> DecodeNode(std::string_view text) { return FromText<NodeState>(text); }
Result<RoundState> DecodeRound(std::string_view text) { return FromText<RoundState>(text); }
Result<RestartRecord> DecodeRecord(std::string_view text) { return FromText<RestartRecord>(text); }
Result<Decision> DecodeDecision(std::string_view text) { return FromText<Decision>(text); }
Result<JobEvent> DecodeEvent(std::string_view text) { return FromText<JobEvent>(text); }
Result<RankFailure> DecodeFailure(std::string_view text) { return FromText<RankFailure>(text); }
Result<StateRest> DecodeStateRest(std::string_view text) { return FromText<StateRest>(text); }
Result<StoredState> DecodeStoredState(std::string_view text) { return FromText<StoredState>(text); }

}  // namespace aimaster
