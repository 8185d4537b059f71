#include "sim/history.h"

#include "core/overloaded.h"

namespace aimaster::sim {
namespace {

std::string Fact(char kind, uint32_t a, uint32_t b = 0, uint32_t c = 0) {
  return kind + std::to_string(a) + '/' + std::to_string(b) + '/' + std::to_string(c);
}

std::string Fact(char kind, const v1::AttemptId& id, uint32_t rank = 0) {
  return Fact(kind, id.instance(), id.attempt(), rank);
}

}  // namespace

std::string FactOf(const v1::Report& report, NodeIndex from) {
  switch (report.body_case()) {
    case v1::Report::kAttemptStarted:
      return Fact('s', report.attempt_started().id());
    case v1::Report::kAttemptReady:
      return Fact('r', report.attempt_ready().id());
    case v1::Report::kRankExited:
      return Fact('x', report.rank_exited().id(), report.rank_exited().rank());
    case v1::Report::kAttemptEnded:
      return Fact('e', report.attempt_ended().id());
    case v1::Report::kPortReserved:
      return Fact('p', report.port_reserved().reservation());
    case v1::Report::kPortRefused:
      return Fact('q', report.port_refused().reservation());
    case v1::Report::kEvidenceCollected:
      return Fact('c', report.evidence_collected().collection(), Value(from));
    case v1::Report::kStacksCaptured:   // no fact before all nodes' are together
    case v1::Report::kRetryableErrors:  // told again with every greeting, until the journal knows them
    case v1::Report::kCustomMessage:    // nobody here says any
    case v1::Report::kCheckpoint:
    case v1::Report::BODY_NOT_SET:
      break;
  }
  return {};
}

std::string FactOf(const Event& event) {
  return std::visit(
      Overloaded{[](const InstanceStarted& e) { return Fact('s', Value(e.instance), Value(e.attempt)); },
                 [](const InstanceReady& e) { return Fact('r', Value(e.instance), Value(e.attempt)); },
                 [](const RankSucceeded& e) { return Fact('x', Value(e.instance), Value(e.attempt), Value(e.rank)); },
                 [](const RankFailed& e) {
                   return Fact('x', Value(e.failure.instance), Value(e.failure.attempt), Value(e.failure.rank));
                 },
                 [](const InstanceEnded& e) { return Fact('e', Value(e.instance), Value(e.attempt)); },
                 [](const PortReserved& e) { return Fact('p', e.reservation); },
                 [](const PortRefused& e) { return Fact('q', e.reservation); },
                 [](const EvidenceCollected& e) { return Fact('c', e.collection, Value(e.node)); },
                 [](const auto&) { return std::string(); }},
      event);
}

void History::Commit(const Input& input, const std::vector<Watcher*>& watchers) {
  const std::vector<bool> before = engine_.job().rank_ended;
  const StepResult result = engine_.Step(input);
  for (const Action& action : result.actions) Note(action);
  if (std::string fact = FactOf(input.event); !fact.empty()) facts_.insert(std::move(fact));
  const std::vector<CountedExit> counted = FindCounted(before, input);
  const DurableStep step{input, result, engine_.job(), counted};
  for (Watcher* watcher : watchers) watcher->OnDurable(step);
}

std::vector<CountedExit> History::FindCounted(const std::vector<bool>& before, const Input& input) const {
  const auto* succeeded = std::get_if<RankSucceeded>(&input.event);
  const auto* failed = std::get_if<RankFailed>(&input.event);
  const bool node_lost = std::holds_alternative<NodeLost>(input.event);
  std::vector<CountedExit> counted;
  if (!succeeded && !failed && !node_lost && !std::holds_alternative<InstanceEnded>(input.event)) return counted;
  const JobState& job = engine_.job();
  for (size_t rank = 0; rank < before.size(); ++rank) {
    if (before[rank] || !job.rank_ended[rank]) continue;
    const InstanceIndex instance = job.instance_of_rank[rank];
    counted.push_back({.instance = instance,
                       .attempt = job.instances[Value(instance)].attempt,
                       .rank = Rank{static_cast<uint32_t>(rank)},
                       .exit = failed ? failed->failure.exit : std::nullopt,
                       .succeeded = succeeded != nullptr,
                       .node_lost = node_lost});
  }
  return counted;
}

void History::Note(const Action& action) {
  std::visit(Overloaded{[this](const AcquireNodes& a) { acquired_.insert(a.nodes.begin(), a.nodes.end()); },
                        [this](const ReservePort& a) { reservations_.insert(a.reservation); },
                        [this](const StartInstance& a) { starts_.insert({a.instance, a.attempt}); },
                        [this](const StopInstance& a) { stops_.insert({a.instance, a.attempt}); },
                        [this](const CollectEvidence& a) { collections_.insert(a.collection); }, [](const auto&) {}},
             action);
}

}  // namespace aimaster::sim
