#include "cli/notify_file.h"

#include <algorithm>

#include "cli/helper_program.h"
#include "cli/text.h"
#include "notify/plan.h"

namespace aimaster::cli {

Result<LoadedNotifyFile> LoadNotifyFile(const std::string& file) {
  Result<HelperEnd> end = RunHelper("aimaster-notify", {"check", file}, "", notify::kPlanMaxBytes);
  if (!end) return Fail(ErrorKind::kEnvironment, "--notify can't be checked: " + end.error().message);
  const std::string message = OneLine(end->complaint);
  if (end->exit_code != 0 || end->signal != 0) {
    return Fail(ErrorKind::kUsage, message.empty() ? "--notify: " + InQuotes(file) + " can't be read" : message);
  }
  Result<notify::Plan> plan = notify::DecodePlan(end->output);
  if (!plan) return Fail(plan.error().kind, "--notify: " + plan.error().message);
  return LoadedNotifyFile{std::move(end->output), std::move(plan->variables)};
}

Result<std::vector<SinkState>> ReadSinkStates(const JobDirectory& directory, const JobSpec& spec, JobReader& reader) {
  std::vector<SinkState> states;
  const Result<notify::Plan> plan = notify::ReadPlan(directory);
  if (!plan && plan.error().kind == ErrorKind::kNotFound) return states;
  if (!plan) return std::unexpected(plan.error());
  const Result<std::vector<SinkProgress>> outbox = reader.ReadOutbox();
  if (!outbox) return std::unexpected(outbox.error());
  int64_t oldest = INT64_MAX;
  std::vector<int64_t> positions;
  for (const notify::Sink& sink : plan->sinks) {
    SinkState& state = states.emplace_back();
    state.name = sink.name;
    state.type = notify::Name(sink.type);
    const auto known = std::ranges::find(*outbox, sink.name, &SinkProgress::sink);
    positions.push_back(known == outbox->end() ? 0 : known->position);
    oldest = std::min(oldest, positions.back());
    if (known == outbox->end()) continue;
    state.delivered = known->delivered;
    state.gave_up = known->gave_up;
    state.trouble = known->trouble;
  }
  const Result<std::vector<NumberedEvent>> events = reader.ReadEventsAfter(oldest);
  if (!events) return std::unexpected(events.error());
  for (const NumberedEvent& event : *events) {
    for (size_t i = 0; i < states.size(); ++i) {
      if (event.number > positions[i] && notify::Wants(*plan, states[i].name, event.event.type, spec.name)) {
        ++states[i].waiting;
      }
    }
  }
  return states;
}

std::string Describe(const SinkState& sink) {
  std::string text = sink.name + " (" + sink.type + "): " + std::to_string(sink.delivered) + " delivered";
  if (sink.waiting > 0) text += ", " + std::to_string(sink.waiting) + " waiting";
  if (sink.gave_up > 0) text += ", " + std::to_string(sink.gave_up) + " given up";
  if (!sink.trouble.empty()) text += "; its last answer: " + sink.trouble;
  return text;
}

int64_t Waiting(const std::vector<SinkState>& sinks) {
  int64_t waiting = 0;
  for (const SinkState& sink : sinks) waiting += sink.waiting;
  return waiting;
}

}  // namespace aimaster::cli
