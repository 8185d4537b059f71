#include "notify/message_reader.h"

#include <algorithm>
#include <array>

#include "journal/aggregate.h"
#include "journal/job_json.h"
#include "journal/job_rules.h"
#include "notify/limits.h"

namespace aimaster::notify {
namespace {

// The end of a job comes a while after the decision that brought it about.
bool IsEndOfJob(std::string_view type) { return type == "aimaster.job.failed" || type == "aimaster.job.stopped"; }

void Add(Message& message, const char* label, const std::string& text) {
  if (text.empty()) return;
  message.facts.push_back({label, Readable(text, kLineMaxBytes)});
}

// The decision that was made at the moment of the event; of several, the one about its subject.
const Explanation* FindBehind(const std::vector<Explanation>& explanations, const JobSnapshot& snapshot,
                              const JobEvent& event) {
  const Explanation* found = nullptr;
  for (const Explanation& explanation : explanations) {
    const bool is_before = explanation.decision.at.monotonic <= event.at.monotonic;
    const bool is_same = explanation.decision.at == event.at;
    if (!is_same && !(IsEndOfJob(event.type) && is_before)) continue;
    const bool is_about = explanation.judgement && !event.subject.empty() &&
                          InstanceNameOf(snapshot, explanation.judgement->root_instance) == event.subject;
    if (is_same && is_about) return &explanation;
    found = &explanation;
  }
  return found;
}

}  // namespace

bool RestsOnDecision(std::string_view type) {
  constexpr std::array<std::string_view, 8> kTypes = {"aimaster.round.restarting",    "aimaster.instance.restarting",
                                                      "aimaster.round.start_retried", "aimaster.job.failed",
                                                      "aimaster.job.stopped",         "aimaster.node.isolated",
                                                      "aimaster.node.kept",           "aimaster.node.denied"};
  return std::ranges::find(kTypes, type) != kTypes.end() || type.starts_with("aimaster.hang.");
}

MessageReader::MessageReader(const JobDirectory& directory, const JobSpec& spec)
    : directory_(directory), spec_(spec), rules_(ReadRulesOf(directory)) {}

Message MessageReader::Read(JobReader& reader, const NumberedEvent& event) const {
  Message message = MessageOf(spec_, event);
  if (!RestsOnDecision(event.event.type)) return message;
  const Result<JobSnapshot> snapshot = reader.ReadSnapshot();
  const Result<std::vector<Explanation>> explanations = reader.ReadExplanations();
  if (!snapshot || !explanations) return message;
  if (const Explanation* behind = FindBehind(*explanations, *snapshot, event.event)) {
    AddReasons(*snapshot, *behind, message);
  }
  return message;
}

void MessageReader::AddReasons(const JobSnapshot& snapshot, const Explanation& explanation, Message& message) const {
  std::string advice;
  if (const std::optional<Judgement>& judgement = explanation.judgement) {
    Add(message, "first", judgement->reasons.empty() ? judgement->message : judgement->reasons.front());
    if (judgement->root_rank) {
      Add(message, "where",
          "rank " + std::to_string(Value(*judgement->root_rank)) + ", " +
              InstanceNameOf(snapshot, judgement->root_instance) + " on " + NodeNameOf(snapshot, judgement->root_node));
    }
    const RuleTable& rules = rules_ ? rules_->table() : RuleTable::BuiltIn();
    const std::optional<RuleIndex> rule = rules.Find(judgement->fault);
    if (rule) advice = rules.rule(*rule).advice.empty() ? rules.rule(*rule).message : rules.rule(*rule).advice;
  }
  if (explanation.line) {
    Add(message, "told by", explanation.line->match.line);
    Add(message, "file", FileOf(directory_, spec_, snapshot, *explanation.line).string());
  }
  const Decision& decision = explanation.decision;
  Add(message, "decision", decision.kind + ": " + decision.summary);
  if (!explanation.limits.empty()) Add(message, "because", explanation.limits.back());
  Add(message, "advice", advice);
}

}  // namespace aimaster::notify
