#include "engine/engine.h"

#include <algorithm>

#include "engine/transition.h"

namespace aimaster {

StepResult Engine::Step(const Input& input) {
  Transition transition(job_, input.at);
  std::visit([&transition](const auto& event) { transition.On(event); }, input.event);
  return transition.TakeResult();
}

std::optional<Monotonic> Engine::NextDeadline() const {
  const Deadlines& deadlines = job_.deadlines;
  std::optional<Monotonic> next;
  for (const auto& deadline : {deadlines.collect, deadlines.collect_cap, deadlines.start, deadlines.stop}) {
    if (deadline && (!next || *deadline < *next)) next = deadline;
  }
  return next;
}

std::vector<Action> Engine::Outstanding() const {
  std::vector<Action> actions;
  const auto for_each_live = [this](auto act) {
    for (size_t i = 0; i < job_.instances.size(); ++i) {
      if (job_.instances[i].live) act(InstanceIndex{static_cast<uint32_t>(i)}, job_.instances[i]);
    }
  };
  const auto start = [&](InstanceIndex index, const InstanceState& instance) {
    if (instance.started) return;
    actions.push_back(StartInstance{.instance = index,
                                    .attempt = instance.attempt,
                                    .node = instance.node,
                                    .round = job_.round,
                                    .restart_count = job_.restarts,
                                    .master_address = job_.master_address,
                                    .master_port = job_.master_port});
  };
  switch (job_.phase) {
    case Phase::kNew:
      break;
    case Phase::kAcquiring: {
      AcquireNodes wanted;
      for (const auto& [index, node] : job_.nodes) {
        if (!node.joined && !node.lost) wanted.nodes.push_back(index);
        if (node.isolated) wanted.avoid.push_back(index);
      }
      if (!wanted.nodes.empty()) actions.push_back(std::move(wanted));
      break;
    }
    case Phase::kReserving:
      actions.push_back(ReservePort{
          .reservation = job_.reservation, .node = job_.instances.front().node, .hold = job_.start_retries == 0});
      break;
    case Phase::kRunning:
      for_each_live(start);
      break;
    case Phase::kCollecting:
      for_each_live(start);
      if (!job_.collecting_from.empty()) {
        actions.push_back(CollectEvidence{.collection = job_.collection,
                                          .nodes = {job_.collecting_from.begin(), job_.collecting_from.end()}});
      }
      break;
    case Phase::kJudging:
      actions.push_back(JudgeFailure{.judgement_number = job_.judgement_number});
      break;
    case Phase::kStopping:
      for_each_live([&](InstanceIndex index, const InstanceState& instance) {
        actions.push_back(StopInstance{
            .instance = index, .attempt = instance.attempt, .node = instance.node, .at_once = job_.stop_at_once});
      });
      break;
    case Phase::kEnded:
      actions.push_back(FinishJob{});
      break;
  }
  return actions;
}

}  // namespace aimaster
