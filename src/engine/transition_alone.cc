// One instance alone: in an Async job a failed worker is stopped, and started again, while the others run on.
//
//   kNone ──a rank fails──▶ kFailed ──judged──▶ kStopping ──ended──▶ kWaiting ──node is there──▶ kNone, next attempt
//                                                             └──▶ kPausing ──time──▶ kWaiting
//
// The job's phase stays what it is about: at most one failure is being collected or judged at a time. How far each
// instance is with its restart is the instance's own (OwnLife), so any number of them may be restarted at once. A phase
// per instance, with collections of their own, was rejected: two workers that one ps took along would be judged before
// the ps is heard of.
#include <algorithm>
#include <chrono>

#include "core/count.h"
#include "core/roles.h"
#include "engine/failures.h"
#include "engine/layout.h"
#include "engine/limits.h"
#include "engine/orders.h"
#include "engine/transition.h"

namespace aimaster {
namespace {

constexpr Duration kMoveRetry = std::chrono::seconds(1);

}  // namespace

OwnLife& Transition::Own(InstanceIndex index) {
  InstanceState& instance = Changed(index);
  return instance.own ? *instance.own : instance.own.emplace();
}

void Transition::SetDeadline(InstanceIndex index, std::optional<Monotonic> deadline) {
  OwnLife& own = Own(index);
  if (own.deadline) job_.tallies.deadlines.erase({*own.deadline, index});
  own.deadline = deadline;
  if (deadline) job_.tallies.deadlines.emplace(*deadline, index);
}

void Transition::SetRenewal(InstanceIndex index, Renewal renewal) {
  OwnLife& own = Own(index);
  job_.tallies.waiting += renewal == Renewal::kWaiting;
  job_.tallies.waiting -= own.renewal == Renewal::kWaiting;
  own.renewal = renewal;
}

// Every judgement is about one instance. One of them may end the job; else each instance goes its way. What failed
// since the detector was asked is collected anew, so no failure is lost, and none is judged twice.
void Transition::DecideApart(const FailureJudged& judged) {
  std::vector<const Judgement*> judgements{&judged.judgement};
  for (const Judgement& other : judged.others) judgements.push_back(&other);
  std::vector<std::pair<const Judgement*, Ruling>> rulings;
  std::set<InstanceIndex> instances;
  for (const Judgement* judgement : judgements) {
    const InstanceState& instance = job_.instances[Value(judgement->root_instance)];
    if (RenewalOf(instance) != Renewal::kFailed || !RestartsAlone(job_.spec, instance.role)) continue;
    if (!instances.insert(judgement->root_instance).second) continue;
    rulings.emplace_back(judgement, RuleOnInstance(job_, *judgement, now_.monotonic));
  }
  const auto last = std::ranges::find_if(rulings, [](const auto& r) { return r.second.verdict != Verdict::kRestart; });
  if (last != rulings.end()) return CarryOut(*last->first, std::move(last->second));
  for (auto& [judgement, ruling] : rulings) RestartAlone(*judgement, std::move(ruling), job_.failure_began);
  if (job_.failures_dropped > 0) RestartTheUnkept(instances);
  ForgetFailuresOf(job_, instances);
  for (size_t i = 0; i < job_.failures.size(); ++i) changed_failures_.insert(i);
  job_.pending_stages.clear();
  if (job_.failures.empty()) {
    GoOn();
  } else {
    Collect(job_.failures.front());
  }
}

// So many ranks failed at once that nothing was kept of some. Nobody can judge these; but they have failed.
void Transition::RestartTheUnkept(std::set<InstanceIndex>& decided) {
  std::set<InstanceIndex> kept;
  for (const RankFailure& failure : job_.failures) kept.insert(failure.instance);
  for (size_t i = 0; i < job_.instances.size(); ++i) {
    const InstanceIndex index{static_cast<uint32_t>(i)};
    const InstanceState& instance = job_.instances[i];
    if (RenewalOf(instance) != Renewal::kFailed || kept.contains(index) || decided.contains(index)) continue;
    decided.insert(index);
    const Judgement judgement =
        AboutInstance(index, "FailedWithMany", "it failed together with so many others that what it said was not kept");
    RestartAlone(judgement, {.verdict = Verdict::kRestart, .summary = judgement.message}, job_.failure_began);
  }
}

// A judgement that needs no detector, since there is nothing to be looked at.
Judgement Transition::AboutInstance(InstanceIndex index, std::string fault, std::string message) const {
  Judgement judgement;
  judgement.root_instance = index;
  judgement.root_node = job_.instances[Value(index)].node;
  judgement.error_code = job_.instances[Value(index)].exit_code;
  judgement.fault = std::move(fault);
  judgement.category = "system";
  judgement.message = std::move(message);
  judgement.source = ErrorSource::kProvider;
  judgement.retryable = Retryable::kYes;
  judgement.reasons.push_back(judgement.message);
  return judgement;
}

void Transition::RestartAlone(const Judgement& judgement, Ruling ruling, const Moment& began) {
  const InstanceIndex index = judgement.root_instance;
  const std::string name = job_.instances[Value(index)].name;
  std::vector<std::string> reasons = judgement.reasons;
  reasons.insert(reasons.end(), ruling.reasons.begin(), ruling.reasons.end());
  const bool isolate = ShouldIsolate(judgement, reasons);
  Record("RestartInstance", ruling.summary, std::move(reasons));
  CloseOwnRecord(index, RestartResult::kFailed);  // the restart before this one never came to its first word
  OwnLife& own = Own(index);
  own.open_record = static_cast<uint32_t>(job_.records.size());
  RestartRecord record;
  record.restarts = ++own.restarts;
  record.scope = RestartScope::kInstance;
  record.restart_time = now_;
  record.began = began;
  record.round = job_.round;
  record.reason = std::move(ruling.summary);
  record.judgement = judgement;
  record.isolated_node = isolate;
  record.node_name = job_.nodes[judgement.root_node].name;
  record.instance_name = name;
  job_.records.push_back(std::move(record));
  changed_records_.insert(job_.records.size() - 1);
  Tell("aimaster.instance.restarting", name, job_.records.back().reason);
  if (isolate) Isolate(judgement.root_node, judgement.message);

  PauseAlone(index, ruling);
  own.stop_began = now_.monotonic;
  SetRenewal(index, Renewal::kStopping);
  if (job_.instances[Value(index)].live) {
    StopAlone(index, false);
  } else {
    ContinueAlone(index);
  }
}

// Nothing is started there from now on. What runs there runs on.
void Transition::Isolate(NodeIndex index, const std::string& reason) {
  NodeState& node = job_.nodes[index];
  node.isolated = true;
  node.isolation_reason = reason;
  Act(IsolateNode{.node = index, .reason = reason});
  Tell("aimaster.node.isolated", node.name, "node " + node.name + " is isolated: " + reason);
}

void Transition::StopAlone(InstanceIndex index, bool at_once) {
  const InstanceState& instance = job_.instances[Value(index)];
  Own(index).stop_at_once = at_once;
  const Duration grace = at_once ? Duration::zero() : Duration(job_.spec.timing.stop_grace);
  SetDeadline(index, now_.monotonic + grace + kStopSlack);
  if (instance.ranks_succeeded < instance.ranks) SetStatus(index, InstanceStatus::kStopping);
  Act(StopOrder(job_, index));
}

void Transition::PauseAlone(InstanceIndex index, const Ruling& ruling) {
  Own(index).not_before.reset();
  if (ruling.wait == Duration::zero()) return;
  Own(index).not_before = now_.monotonic + ruling.wait;
  const std::string& name = job_.instances[Value(index)].name;
  Tell("aimaster.instance.waiting", name,
       name + " waits " + FormatDuration(ruling.wait) + " before restart " + std::to_string(Own(index).restarts));
}

// No process of its former attempt exists any more.
void Transition::ContinueAlone(InstanceIndex index) {
  SetStatus(index, InstanceStatus::kPending);
  if (const std::optional<Monotonic> start = std::exchange(Own(index).not_before, {}); start > now_.monotonic) {
    SetRenewal(index, Renewal::kPausing);
    return SetDeadline(index, start);
  }
  SetRenewal(index, Renewal::kWaiting);
  SetDeadline(index, now_.monotonic + job_.spec.timing.start_timeout);
  if (!StartWhereItsSlotIs(index)) AskForNodes();
}

// False: it has to wait for the node.
bool Transition::StartWhereItsSlotIs(InstanceIndex index) {
  const uint32_t slot = SlotOf(job_.spec, index);
  const NodeState& node = job_.nodes.at(job_.placement[slot]);
  if (node.isolated || node.lost) ReplaceSlot(slot);
  Seat(index, job_.placement[slot]);
  if (!NodeUsable(job_.placement[slot])) return false;
  if (WouldMove(index)) {
    SetDeadline(index, now_.monotonic);  // decided about by itself, and not in the midst of what led here
  } else {
    StartAlone(index);
  }
  return true;
}

// Others know it by its address, and can't be told of another one.
bool Transition::WouldMove(InstanceIndex index) const {
  const InstanceState& instance = job_.instances[Value(index)];
  return instance.port != 0 && NodeUsable(instance.node) && job_.nodes.at(instance.node).address != instance.address;
}

void Transition::StartWaiting() {
  for (size_t i = 0; i < job_.instances.size() && job_.tallies.waiting > 0; ++i) {
    if (RenewalOf(job_.instances[i]) == Renewal::kWaiting) StartWhereItsSlotIs(InstanceIndex{static_cast<uint32_t>(i)});
  }
  if (job_.tallies.waiting > 0) AskForNodes();
}

void Transition::AskForNodes() {
  if (AcquireNodes wanted = AcquireOrder(job_); !wanted.nodes.empty()) Act(std::move(wanted));
}

// On a node where others run it is counted behind them: their LOCAL_RANKs are taken.
void Transition::Seat(InstanceIndex index, NodeIndex node) {
  InstanceState& instance = Changed(index);
  if (instance.node == node) return;
  instance.node = node;
  if (RenewalOf(instance) != Renewal::kWaiting) return;
  uint32_t first = 0;
  instance.own->first_local_rank = 0;  // not counted among those that were there
  const std::vector<NodePlace> places = PlacesOnNodes(job_);
  for (size_t i = 0; i < places.size(); ++i) {
    if (job_.instances[i].node != node || i == Value(index)) continue;
    first = std::max(first, places[i].first_local_rank + job_.instances[i].ranks);
  }
  instance.own->first_local_rank = first;
}

void Transition::StartAlone(InstanceIndex index) {
  InstanceState& instance = Changed(index);
  SetRenewal(index, Renewal::kNone);
  for (uint32_t i = 0; i < instance.ranks; ++i) {
    const Rank rank{Value(instance.first_rank) + i};
    job_.tallies.ranks_ended -= job_.rank_ended[Value(rank)];
    job_.rank_ended[Value(rank)] = false;
    job_.dumping_core.erase(rank);
  }
  job_.tallies.started -= instance.started;
  job_.tallies.ready -= instance.ready;
  BeginAttempt(index);
  SetLive(index, true);
  instance.own->started_alone = true;
}

// Decided, and the round goes on: what waited for that is looked at now.
void Transition::GoOn() {
  job_.phase = Phase::kRunning;
  job_.deadlines.collect.reset();
  job_.deadlines.collect_cap.reset();
  FinishStartStage();
  if (All(job_.tallies.ready) || !job_.deadlines.start) FinishReadyStage();
  SucceedWhenAllHave();
}

void Transition::OnDeadlines() {
  std::vector<InstanceIndex> due;
  auto& deadlines = job_.tallies.deadlines;
  for (auto next = deadlines.begin(); next != deadlines.end() && next->first <= now_.monotonic; ++next) {
    due.push_back(next->second);
  }
  for (const InstanceIndex index : due) {
    const InstanceState& instance = job_.instances[Value(index)];
    const bool is_start = instance.own->renewal == Renewal::kNone && instance.live && !instance.started;
    if (!is_start || RestartsAlone(job_.spec, instance.role)) continue;
    return FailStart("StartTimeout", instance.name + " was not started within --start-timeout", index);
  }
  for (const InstanceIndex index : due) {
    const bool is_set = job_.instances[Value(index)].own->deadline.has_value();
    if (is_set) OnDeadlineOf(index);  // one that is not was ended with the job, by another's deadline
  }
}

void Transition::OnDeadlineOf(InstanceIndex index) {
  const InstanceState& instance = job_.instances[Value(index)];
  SetDeadline(index, std::nullopt);
  switch (instance.own->renewal) {
    case Renewal::kStopping:
      return EscalateStopAlone(index);
    case Renewal::kPausing:
      return ContinueAlone(index);
    case Renewal::kWaiting:
      if (WouldMove(index)) {
        // A failure that is being looked into is judged first: it may say more than that a node is gone.
        if (job_.phase != Phase::kRunning) return SetDeadline(index, now_.monotonic + kMoveRetry);
        return RestartForMove(index);
      }
      return FailStartAlone(AboutInstance(index, "NodeTimeout", "no node was ready for it within --start-timeout"));
    case Renewal::kFailed:
      return;  // what has failed is being looked into
    case Renewal::kNone:
      if (!instance.live) return;
      if (!instance.started) {
        return FailStartAlone(AboutInstance(index, "StartTimeout", "it was not started within --start-timeout"));
      }
      return CloseOwnRecord(index, RestartResult::kRestarted);  // it runs, and never prints
  }
}

// It could not be started for a reason that is no rank's.
void Transition::FailStartAlone(const Judgement& judgement) {
  Ruling ruling = RuleOnInstance(job_, judgement, now_.monotonic);
  if (ruling.verdict == Verdict::kRestart) return RestartAlone(judgement, std::move(ruling), now_);
  job_.failure_began = now_;
  CarryOut(judgement, std::move(ruling));
}

// Only all together can be given other addresses.
void Transition::RestartForMove(InstanceIndex index) {
  const InstanceState& instance = job_.instances[Value(index)];
  job_.failure_began = now_;
  EndAllStages();
  job_.pending_stages.clear();
  job_.pending_stages.push_back({Stage::kDecide, now_, std::nullopt});
  Decide(AboutInstance(index, "AddressLost",
                       "it can't be restarted alone: its node is gone, and the others know it by its address there, " +
                           instance.address + ":" + std::to_string(instance.port)));
}

void Transition::EscalateStopAlone(InstanceIndex index) {
  const InstanceState& instance = job_.instances[Value(index)];
  const std::string name = instance.name + " on " + job_.nodes[instance.node].name;
  if (now_.monotonic - instance.own->stop_began < StopPatience()) {
    Tell("aimaster.instance.unkillable", instance.name, "still not gone, killing again: " + name);
    return StopAlone(index, true);
  }
  Record("Unkillable", "the job fails: processes of " + name + " can't be killed",
         {"they are still there after SIGKILL was asked for again and again; nothing new is started beside them, since "
          "they may hold devices and ports"});
  FailNow("Unkillable", "processes of " + name + " could not be killed (uninterruptible sleep?)");
}

// Without a judgement: there is no way on.
void Transition::FailNow(std::string reason_code, std::string reason_message) {
  job_.pending_stages.clear();
  EndAllStages();
  job_.reason_code = std::move(reason_code);
  job_.reason_message = std::move(reason_message);
  job_.exit_code = 1;
  StopAll(StopPurpose::kFail);
}

// The job as a whole is stopped: from now on no instance has a life of its own.
void Transition::EndOwnLives(RestartResult result) {
  if (!IsAsync(job_)) return;
  for (size_t i = 0; i < job_.instances.size(); ++i) {
    const InstanceIndex index{static_cast<uint32_t>(i)};
    const InstanceState& instance = job_.instances[i];
    if (!instance.own) continue;
    CloseOwnRecord(index, result);
    if (instance.own->deadline) SetDeadline(index, std::nullopt);
    const bool has_ended = instance.own->renewal == Renewal::kPausing || instance.own->renewal == Renewal::kWaiting;
    if (has_ended) SetStatus(index, InstanceStatus::kFailed);
    if (instance.own->renewal != Renewal::kNone) SetRenewal(index, Renewal::kNone);
  }
}

void Transition::CloseOwnRecord(InstanceIndex index, RestartResult result) {
  const InstanceState& instance = job_.instances[Value(index)];
  if (!instance.own || !instance.own->open_record) return;
  const uint32_t number = *std::exchange(Own(index).open_record, std::nullopt);
  RestartRecord& record = job_.records[number];
  record.result = result;
  record.duration = now_.monotonic - record.began.monotonic;
  changed_records_.insert(number);
  if (result != RestartResult::kRestarted) return;
  Tell("aimaster.instance.restarted", instance.name,
       instance.name + " runs again, " + FormatDuration(*record.duration) + " after its failure");
}

}  // namespace aimaster
