#include "engine/engine.h"

#include <algorithm>

#include "engine/orders.h"
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
    if (!instance.started) actions.push_back(StartOrder(job_, index));
  };
  switch (job_.phase) {
    case Phase::kNew:
      break;
    case Phase::kAcquiring:
      if (AcquireNodes wanted = AcquireOrder(job_); !wanted.nodes.empty()) actions.push_back(std::move(wanted));
      break;
    case Phase::kReserving:
      actions.push_back(ReserveOrder(job_));
      break;
    case Phase::kRunning:
      for_each_live(start);
      break;
    case Phase::kCollecting:
      for_each_live(start);
      if (!job_.collecting_from.empty()) actions.push_back(CollectOrder(job_));
      break;
    case Phase::kJudging:
      actions.push_back(JudgeFailure{.judgement_number = job_.judgement_number});
      break;
    case Phase::kStopping:
      for_each_live([&](InstanceIndex index, const InstanceState&) { actions.push_back(StopOrder(job_, index)); });
      break;
    case Phase::kEnded:
      actions.push_back(FinishJob{});
      break;
  }
  return actions;
}

}  // namespace aimaster
