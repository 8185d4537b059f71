#include "engine/engine.h"

#include <algorithm>

#include "engine/failures.h"
#include "engine/orders.h"
#include "engine/transition.h"

namespace aimaster {

Engine::Engine(JobState job) : job_(std::move(job)) { job_.tallies = CountAll(job_); }

Event Engine::Fit(Event event) const {
  if (auto* failed = std::get_if<RankFailed>(&event)) {
    failed->failure = FitFailure(job_, std::move(failed->failure));
  }
  return event;
}

StepResult Engine::Step(const Input& input) {
  Transition transition(job_, input.at);
  std::visit([&transition](const auto& event) { transition.On(event); }, input.event);
  return transition.TakeResult();
}

std::optional<Monotonic> Engine::NextDeadline() const {
  const Deadlines& deadlines = job_.deadlines;
  std::optional<Monotonic> next;
  for (const auto& deadline : {deadlines.collect, deadlines.collect_cap, deadlines.start, deadlines.stop,
                               deadlines.wait, job_.stacks.deadline}) {
    if (deadline && (!next || *deadline < *next)) next = deadline;
  }
  const auto& of_instances = job_.tallies.deadlines;
  if (!of_instances.empty() && (!next || of_instances.begin()->first < *next)) next = of_instances.begin()->first;
  return next;
}

std::vector<Action> Engine::Outstanding(std::optional<NodeIndex> only_node) const {
  std::vector<Action> actions;
  const auto wanted_on = [only_node](NodeIndex node) { return !only_node || *only_node == node; };
  const auto for_each_live = [&](auto act) {
    for (size_t i = 0; i < job_.instances.size(); ++i) {
      if (job_.instances[i].live && wanted_on(job_.instances[i].node))
        act(InstanceIndex{static_cast<uint32_t>(i)}, job_.instances[i]);
    }
  };
  const auto acquire = [&] {
    if (only_node) return;
    if (AcquireNodes wanted = AcquireOrder(job_); !wanted.nodes.empty()) actions.push_back(std::move(wanted));
  };
  const auto lives = [&] {
    for_each_live([&](InstanceIndex index, const InstanceState& instance) {
      if (RenewalOf(instance) == Renewal::kStopping) {
        actions.push_back(StopOrder(job_, index));
      } else if (!instance.started) {
        actions.push_back(StartOrder(job_, index));
      }
    });
    if (job_.tallies.waiting > 0) acquire();
  };
  const auto stacks = [&] {
    const bool is_wanted = !only_node || job_.nodes.contains(*only_node);
    if (job_.stacks.is_under_way && is_wanted) actions.push_back(CaptureOrder(job_));
  };
  switch (job_.phase) {
    case Phase::kNew:
      break;
    case Phase::kAcquiring:
      acquire();
      break;
    case Phase::kReserving:
      for (const ReservePort& order : ReserveOrders(job_)) {
        if (wanted_on(order.node)) actions.push_back(order);
      }
      break;
    case Phase::kRunning:
      lives();
      stacks();
      break;
    case Phase::kCollecting:
      lives();
      stacks();
      if (only_node && job_.collecting_from.contains(*only_node)) {
        actions.push_back(CollectEvidence{.collection = job_.collection, .nodes = {*only_node}});
      } else if (!only_node && !job_.collecting_from.empty()) {
        actions.push_back(CollectOrder(job_));
      }
      break;
    case Phase::kJudging:
      if (IsAsync(job_)) lives();
      stacks();
      if (!only_node) actions.push_back(JudgeOrder(job_));
      break;
    case Phase::kStopping:
      for_each_live([&](InstanceIndex index, const InstanceState&) { actions.push_back(StopOrder(job_, index)); });
      break;
    case Phase::kEnded:
      if (!only_node) actions.push_back(FinishJob{});
      break;
  }
  return actions;
}

}  // namespace aimaster
