// Durable before acted: whatever a master sends or asks for follows from inputs that are in the journal by then. Only a
// person's stop may go first, since it only ever makes less run.
#include <map>

#include "sim/checkers.h"
#include "sim/world.h"

namespace aimaster::sim {
namespace {

class DurableFirst : public Watcher {
 public:
  explicit DurableFirst(World& world) : Watcher(world) {}
  std::string_view name() const override { return "durable-first"; }

  void OnReport(uint64_t agent, const v1::Report& report) override {
    if (report.has_stacks_captured()) return;  // a master that comes anew asks for them anew
    unacknowledged_[agent].emplace(report.sequence(), FactOf(report, NodeOf(agent)));
  }

  void OnFrameToAgent(uint64_t agent, const v1::ToAgent& message) override {
    if (message.has_acknowledge()) return Acknowledged(agent, message.acknowledge().sequence());
    if (message.refused().job_over()) {
      return Expect(world_.history.has_finished() || !IsOfTheJob(agent), "that a node has nothing to do with the job");
    }
    if (!message.has_command()) return;
    const History& history = world_.history;
    const v1::Command& command = message.command();
    switch (command.body_case()) {
      case v1::Command::kStartInstance:
        return Expect(history.has_started(Instance(command.start_instance()), AttemptOf(command.start_instance())),
                      "a start of instance " + std::to_string(command.start_instance().id().instance()));
      case v1::Command::kStopInstance:
        return Expect(history.has_stopped(Instance(command.stop_instance()), AttemptOf(command.stop_instance())) ||
                          IsGivenUp(command.stop_instance()) || world_.stop_was_asked(),
                      "a stop of instance " + std::to_string(command.stop_instance().id().instance()));
      case v1::Command::kReservePort:
        return Expect(history.has_reserved(command.reserve_port().reservation()), "a reservation of a port");
      case v1::Command::kCollectEvidence:
        return Expect(history.has_collected(command.collect_evidence().collection()), "a collection of evidence");
      case v1::Command::kShutdown:
        return Expect(history.has_finished(), "a shutdown");
      case v1::Command::kRetryableErrors:
        return Expect(
            static_cast<size_t>(command.retryable_errors().texts_size()) <= history.job().retryable_texts.size(),
            "texts that make a failure retryable");
      case v1::Command::kCaptureStacks:
        return Expect(command.capture_stacks().capture() <= history.job().stacks.number, "a capture of stacks");
      case v1::Command::kLookNow:  // these change nothing
      case v1::Command::kReadRecords:
      case v1::Command::kSignalInstances:
      case v1::Command::BODY_NOT_SET:
        break;
    }
  }

  void OnAsksProvider(const std::vector<NodeIndex>& nodes) override {
    for (const NodeIndex node : nodes) Expect(world_.history.has_acquired(node), "a request for a node");
  }

 private:
  template <typename Order>
  static InstanceIndex Instance(const Order& order) {
    return InstanceIndex{order.id().instance()};
  }
  template <typename Order>
  static Attempt AttemptOf(const Order& order) {
    return Attempt{order.id().attempt()};
  }
  // It has ended, as the journal knows, and an agent's greeting that was overtaken says that it lives.
  bool IsGivenUp(const v1::StopInstance& order) const {
    const auto& instances = world_.history.job().instances;
    if (order.id().instance() >= instances.size()) return false;
    const InstanceState& known = instances[order.id().instance()];
    return order.id().attempt() < Value(known.attempt) || (order.id().attempt() == Value(known.attempt) && !known.live);
  }
  bool IsOfTheJob(uint64_t agent) {
    const SimAgent* there = world_.FindAgent(agent);
    if (there == nullptr) return false;
    const auto& nodes = world_.history.job().nodes;
    const auto found = nodes.find(NodeOf(agent));
    return found != nodes.end() && !found->second.lost;
  }
  NodeIndex NodeOf(uint64_t agent) {
    for (const auto& [index, node] : world_.nodes) {
      if (node->agent != nullptr && node->agent->id() == agent) return index;
    }
    return NodeIndex{};
  }
  void Expect(bool holds, const std::string& what) {
    if (!holds) Complain(what + " is sent, and nothing in the journal says so");
  }

  // What is acknowledged is forgotten by the agent, so it has to be known for good.
  void Acknowledged(uint64_t agent, uint64_t sequence) {
    auto& reports = unacknowledged_[agent];
    while (!reports.empty() && reports.begin()->first <= sequence) {
      const std::string fact = reports.begin()->second;
      if (!world_.history.has_fact(fact)) Complain("report " + fact + " is acknowledged, and not in the journal");
      reports.erase(reports.begin());
    }
  }

  std::map<uint64_t, std::map<uint64_t, std::string>> unacknowledged_;
};

}  // namespace

std::unique_ptr<Watcher> MakeDurableFirstChecker(World& world) { return std::make_unique<DurableFirst>(world); }

}  // namespace aimaster::sim
