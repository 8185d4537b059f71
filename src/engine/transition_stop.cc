// Going down: stopping all instances, and what comes after: another round, another start, or the end.
#include <algorithm>

#include "core/count.h"
#include "core/roles.h"
#include "engine/layout.h"
#include "engine/orders.h"
#include "engine/transition.h"

namespace aimaster {

void Transition::On(const StopRequested& input) {
  switch (job_.phase) {
    case Phase::kNew:
    case Phase::kEnded:
      return;
    case Phase::kAcquiring:
    case Phase::kReserving:
    case Phase::kRunning:
    case Phase::kCollecting:
    case Phase::kJudging:
      break;
    case Phase::kStopping:
      if (job_.stop_purpose != StopPurpose::kRestart && job_.stop_purpose != StopPurpose::kRetryStart) {
        // It is going down already; only the hurry can be new.
        if (input.at_once && !job_.stop_at_once) StopLiveInstances(true);
        if (job_.stop_purpose == StopPurpose::kSucceed) job_.late_stop_by = input.by;
        return;
      }
      break;
  }
  Record("Stop", "stopped by " + input.by, {input.at_once ? "at once, without grace" : "with --stop-grace"});
  Tell("aimaster.job.stopping", "", "the job is being stopped by " + input.by);
  job_.reason_code = "JobStoppedByUser";
  job_.reason_message = "Job is stopped by " + input.by + ".";
  job_.pending_stages.clear();
  EndAllStages();
  job_.stop_at_once = input.at_once;
  StopAll(StopPurpose::kUserStop);
}

void Transition::StopAll(StopPurpose purpose) {
  EndOwnLives(purpose == StopPurpose::kUserStop ? RestartResult::kStopped : RestartResult::kFailed);
  job_.phase = Phase::kStopping;
  job_.stop_purpose = purpose;
  job_.deadlines = {};
  job_.hang.reset();
  if (purpose != StopPurpose::kRestart) job_.not_before.reset();
  job_.collecting_from.clear();
  job_.dumping_core.clear();
  job_.stop_escalations = 0;
  job_.stop_began = now_.monotonic;
  if (purpose == StopPurpose::kFail || purpose == StopPurpose::kUserStop) job_.status = JobStatus::kStopping;
  BeginStage(Stage::kStop);
  StopLiveInstances(job_.stop_at_once);
  ContinueWhenStopped();
}

void Transition::StopLiveInstances(bool at_once) {
  job_.stop_at_once = at_once;
  const Duration grace = at_once ? Duration::zero() : Duration(job_.spec.timing.stop_grace);
  job_.deadlines.stop = now_.monotonic + grace + kStopSlack;
  for (size_t i = 0; i < job_.instances.size(); ++i) {
    if (!job_.instances[i].live) continue;
    const InstanceIndex index{static_cast<uint32_t>(i)};
    const InstanceState& instance = job_.instances[i];
    // One whose ranks have all ended well has succeeded, and is only being swept.
    if (instance.ranks_succeeded < instance.ranks) SetStatus(index, InstanceStatus::kStopping);
    Act(StopOrder(job_, index));
  }
}

void Transition::On(const InstanceEnded& input) {
  InstanceState* instance = Current(input.instance, input.attempt);
  if (instance == nullptr) return;
  LoseSilentRanks(input.instance, "it ended and left no exit status", false);
  SetLive(input.instance, false);
  if (instance->ranks_failed > 0) {
    SetStatus(input.instance, InstanceStatus::kFailed);
  } else if (instance->ranks_succeeded == instance->ranks) {
    SetStatus(input.instance, InstanceStatus::kSucceeded);
    instance->exit_code = 0;
  } else {
    SetStatus(input.instance, InstanceStatus::kStopped);
  }
  if (RoundIsUp() && RenewalOf(*instance) == Renewal::kStopping) return ContinueAlone(input.instance);
  switch (job_.phase) {
    case Phase::kRunning:
      SucceedWhenAllHave();
      return;
    case Phase::kStopping:
      ContinueWhenStopped();
      return;
    case Phase::kCollecting:
    case Phase::kJudging:
      if (IsWorkDone()) Succeed();  // whatever has failed beside it
      return;
    case Phase::kNew:
    case Phase::kAcquiring:
    case Phase::kReserving:
    case Phase::kEnded:
      return;
  }
}

// All ranks that matter have ended with 0. What fails from now on fails in vain: servers that lose their clients, say.
bool Transition::IsWorkDone() const {
  return job_.tallies.work_done == CountingInstances(job_.spec) && FailedMpiHost() == nullptr;
}

// One whose ranks are gone with it, whatever mpirun makes of that: MPICH's may end with 0 when it loses a host.
const RankFailure* Transition::FailedMpiHost() const {
  if (!IsMpi(job_.spec)) return nullptr;
  const auto failed = std::ranges::find_if(job_.failures, [this](const RankFailure& failure) {
    return !failure.stopped_by_us && IsMpiHost(job_.spec, job_.instances[Value(failure.instance)].role);
  });
  return failed == job_.failures.end() ? nullptr : &*failed;
}

// An instance whose result a restart of the job does not touch.
bool Transition::IsDoneForGood(InstanceIndex index) const {
  return KeepsResults(job_.spec) && job_.instances[Value(index)].status == InstanceStatus::kSucceeded;
}

// Servers don't end by themselves: when all that count have, they are stopped, which is no failure.
void Transition::SucceedWhenAllHave() {
  if (job_.tallies.work_succeeded == CountingInstances(job_.spec)) Succeed();
}

void Transition::Succeed() {
  job_.pending_stages.clear();
  job_.reason_code = "JobSucceeded";
  job_.reason_message = SuccessText(job_.spec);
  Record("Succeed", job_.reason_message, {});
  if (!All(job_.tallies.succeeded)) return StopAll(StopPurpose::kSucceed);
  End(JobStatus::kSucceeded, job_.reason_code, job_.reason_message, 0);
}

void Transition::ContinueWhenStopped() {
  if (job_.phase != Phase::kStopping || job_.tallies.live > 0) return;
  job_.deadlines.stop.reset();
  job_.stop_at_once = false;
  EndStage(Stage::kStop);
  switch (job_.stop_purpose) {
    case StopPurpose::kRestart:
    case StopPurpose::kRetryStart:
      if (MustWait()) return;
      for (size_t i = 0; i < job_.instances.size(); ++i) {
        const InstanceIndex index{static_cast<uint32_t>(i)};
        if (IsDoneForGood(index)) continue;
        SetStatus(index, InstanceStatus::kPending);
        job_.instances[i].node = job_.placement[SlotOf(job_.spec, index)];  // also where it ran on elsewhere
      }
      ReplaceNodes();
      return;
    case StopPurpose::kFail:
      End(JobStatus::kFailed, job_.reason_code, job_.reason_message, job_.exit_code);
      return;
    case StopPurpose::kSucceed:
      if (const RankFailure* failed = FailedMpiHost()) return TakeBackSuccess(RankFailure(*failed));
      End(JobStatus::kSucceeded, job_.reason_code, job_.reason_message, 0);
      return;
    case StopPurpose::kUserStop:
      End(JobStatus::kStopped, job_.reason_code, job_.reason_message, 1);
      return;
  }
}

// The launcher's end was known before that of the host which had died before it.
void Transition::TakeBackSuccess(const RankFailure& failure) {
  Record("TakeBack",
         "exit code 0 of the launcher does not count: " + job_.instances[Value(failure.instance)].name +
             ", which held ranks for it, had failed",
         {});
  if (!job_.late_stop_by.empty()) {
    return End(JobStatus::kStopped, "JobStoppedByUser", "Job is stopped by " + job_.late_stop_by + ".", 1);
  }
  TellFailed(failure);
  Collect(failure);
  CloseCollectionWhenComplete();
}

// Nothing runs; the time has yet to come.
bool Transition::MustWait() {
  const bool must = job_.not_before && *job_.not_before > now_.monotonic;
  if (must && !job_.deadlines.wait) BeginStage(Stage::kWait);
  job_.deadlines.wait = must ? job_.not_before : std::nullopt;
  if (must) return true;
  if (std::exchange(job_.not_before, std::nullopt)) EndStage(Stage::kWait);
  return false;
}

// Fills the slots whose node is isolated or lost: a spare first, else a new node from the provider.
void Transition::ReplaceNodes() {
  std::set<NodeIndex> placed(job_.placement.begin(), job_.placement.end());
  bool isolating = false;
  for (const auto& [index, node] : job_.nodes) {
    if (!node.isolated || !placed.contains(index)) continue;
    if (!std::exchange(isolating, true)) BeginStage(Stage::kIsolate);
    Act(IsolateNode{.node = index, .reason = node.isolation_reason});
    Tell("aimaster.node.isolated", node.name, "node " + node.name + " is isolated: " + node.isolation_reason);
  }
  if (isolating) EndStage(Stage::kIsolate);
  auto spare = job_.nodes.begin();  // the next that may be one; those before it are not, or are taken
  for (uint32_t slot = 0; slot < job_.placement.size(); ++slot) {
    const NodeState& node = job_.nodes[job_.placement[slot]];
    if (!node.isolated && !node.lost) continue;
    while (spare != job_.nodes.end() && (!NodeUsable(spare->first) || placed.contains(spare->first))) ++spare;
    NodeIndex replacement = NextNodeIndex();
    if (spare != job_.nodes.end()) {
      replacement = spare->first;
    } else {
      job_.nodes[replacement] = {};
    }
    placed.insert(replacement);
    Place(slot, replacement);
  }
  Acquire();
}

// The same for one slot of a job that runs.
void Transition::ReplaceSlot(uint32_t slot) {
  const std::set<NodeIndex> placed(job_.placement.begin(), job_.placement.end());
  const auto spare = std::ranges::find_if(
      job_.nodes, [&](const auto& entry) { return NodeUsable(entry.first) && !placed.contains(entry.first); });
  const NodeIndex replacement = spare != job_.nodes.end() ? spare->first : NextNodeIndex();
  if (spare == job_.nodes.end()) job_.nodes[replacement] = {};
  Place(slot, replacement);
}

// Puts each slot whose node can't be used on the usable node that carries the fewest slots. False: there is none.
bool Transition::FillSlots() {
  std::map<NodeIndex, uint32_t> slots_on;
  for (const NodeIndex node : job_.placement) ++slots_on[node];
  std::set<std::pair<uint32_t, NodeIndex>> usable;  // by how many slots they carry
  for (const auto& [index, node] : job_.nodes) {
    if (NodeUsable(index)) usable.emplace(slots_on[index], index);
  }
  for (uint32_t slot = 0; slot < job_.placement.size(); ++slot) {
    if (NodeUsable(job_.placement[slot])) continue;
    if (usable.empty()) return false;
    const auto [load, node] = *usable.begin();
    usable.erase(usable.begin());
    usable.emplace(load + 1, node);
    Place(slot, node);
  }
  return true;
}

void Transition::Place(uint32_t slot, NodeIndex node) {
  job_.placement[slot] = node;
  for (const InstanceIndex index : InstancesOfSlot(job_.spec, slot)) {
    const bool starts_there = !RoundIsUp() || RenewalOf(job_.instances[Value(index)]) == Renewal::kWaiting;
    if (starts_there) Seat(index, node);
  }
}

void Transition::EscalateStop() {
  if (job_.phase != Phase::kStopping) return;
  const std::string names = NamesOfLive();
  ++job_.stop_escalations;
  // A node that is silent may not have heard of it yet, and is being recovered.
  if (now_.monotonic - job_.stop_began < StopPatience()) {
    Tell("aimaster.instance.unkillable", "", "still not gone, killing again: " + names);
    StopLiveInstances(true);
    return;
  }
  Record("Unkillable", "the job fails: processes of " + names + " can't be killed",
         {"they are still there after SIGKILL was asked for " + Count(job_.stop_escalations, "time") +
          "; nothing new is started beside them, since they may hold devices and ports"});
  End(JobStatus::kFailed, "Unkillable",
      "processes of " + names +
          " could not be killed (uninterruptible sleep?); unkillable.json in the attempt's folder names them",
      job_.exit_code == 0 ? 1 : job_.exit_code);
}

Duration Transition::StopPatience() const {
  return job_.spec.timing.stop_grace + 2 * job_.spec.timing.node_lost_timeout + kUnkillableAfter;
}

void Transition::End(JobStatus status, std::string reason_code, std::string reason_message, int exit_code) {
  job_.phase = Phase::kEnded;
  job_.status = status;
  job_.reason_code = std::move(reason_code);
  job_.reason_message = std::move(reason_message);
  job_.exit_code = exit_code;
  job_.end_time = now_.wall;
  job_.deadlines = {};
  job_.stacks.is_under_way = false;
  job_.stacks.deadline.reset();
  job_.hang.reset();
  if (!job_.rounds.empty()) {
    EndAllStages();
    RoundState& round = ChangedRound();
    round.end = now_.wall;
    round.result = status == JobStatus::kSucceeded ? RoundResult::kSucceeded
                   : status == JobStatus::kFailed  ? RoundResult::kFailed
                                                   : RoundResult::kStopped;
    round.reason = job_.reason_message;
  }
  CloseRecord(status == JobStatus::kSucceeded ? RestartResult::kRestarted
              : status == JobStatus::kFailed  ? RestartResult::kFailed
                                              : RestartResult::kStopped);
  Tell("aimaster.job." + std::string(status == JobStatus::kSucceeded ? "succeeded"
                                     : status == JobStatus::kFailed  ? "failed"
                                                                     : "stopped"),
       "", job_.reason_message);
  Act(FinishJob{});
}

// The restart of the job that is under way, if one is, has come to this end. How long it took; none: there was none.
std::optional<Duration> Transition::CloseRecord(RestartResult result) {
  const auto last =
      std::ranges::find(job_.records.rbegin(), job_.records.rend(), RestartScope::kJob, &RestartRecord::scope);
  if (last == job_.records.rend() || last->result != RestartResult::kRestarting) return std::nullopt;
  last->result = result;
  last->duration = now_.monotonic - last->began.monotonic;
  changed_records_.insert(static_cast<size_t>(job_.records.rend() - last) - 1);
  return last->duration;
}

}  // namespace aimaster
