// Failing: from the first rank that ended badly to the decision.
#include <algorithm>

#include "core/roles.h"
#include "engine/failures.h"
#include "engine/layout.h"
#include "engine/limits.h"
#include "engine/orders.h"
#include "engine/transition.h"

namespace aimaster {
namespace {

bool Holds(const InstanceState& instance, Rank rank) {
  return rank >= instance.first_rank && Value(rank) - Value(instance.first_rank) < instance.ranks;
}

// About instances and nodes of this job. One from a damaged journal may not be.
bool IsAbout(const JobState& job, const Judgement& judgement) {
  const auto known = [&job](InstanceIndex index) { return Value(index) < job.instances.size(); };
  return known(judgement.root_instance) && job.nodes.contains(judgement.root_node) &&
         std::ranges::all_of(judgement.details, known, &FailureDetail::instance);
}

std::string AdviceText(const FaultToleranceParameters& parameters, std::chrono::seconds interval) {
  return std::string("a collective operation timed out before AIMaster found a hang: with ") +
         (parameters.enable_job_hang_detection ? "" : "--enable-job-hang-detection=True ") +
         "--job-hang-interval=" + std::to_string(interval.count()) +
         " it would have been found first, with the call stacks of all ranks";
}

}  // namespace

void Transition::On(const RankSucceeded& input) {
  InstanceState* instance = Current(input.instance, input.attempt);
  if (instance == nullptr || !Holds(*instance, input.rank) || job_.rank_ended[Value(input.rank)]) return;
  job_.rank_ended[Value(input.rank)] = true;
  ++job_.tallies.ranks_ended;
  SetRanksSucceeded(input.instance, instance->ranks_succeeded + 1);
  if (!job_.first_success && CountsForSuccess(job_.spec, instance->role, instance->index_in_role)) {
    job_.first_success = now_.monotonic;
  }
  if (instance->ranks_succeeded == instance->ranks && !instance->ready) MarkReady(input.instance);
  CloseCollectionWhenComplete();
}

void Transition::On(const RankFailed& input) {
  const RankFailure& failure = input.failure;
  InstanceState* instance = Current(failure.instance, failure.attempt);
  if (instance == nullptr || !Holds(*instance, failure.rank) || job_.rank_ended[Value(failure.rank)]) return;
  job_.rank_ended[Value(failure.rank)] = true;
  ++job_.tallies.ranks_ended;
  job_.dumping_core.erase(failure.rank);
  Changed(failure.instance);
  const bool own_fault = !failure.stopped_by_us;
  // What is shown of an instance is its first own fault; how it died of our signal only while there is none.
  if (failure.exit && (!instance->exit_code || (own_fault && instance->ranks_failed == 0))) {
    instance->exit_code = ShellStatus(*failure.exit);
    instance->signal = failure.exit->signal;
  }
  instance->ranks_failed += own_fault;
  if (RoundIsUp() && IsAsync(job_)) {
    if (RenewalOf(*instance) == Renewal::kStopping) return CloseCollectionWhenComplete();  // it is decided about
    if (RenewalOf(*instance) == Renewal::kNone && job_.phase != Phase::kRunning) TellFailed(failure);
    SetRenewal(failure.instance, Renewal::kFailed);
  }
  switch (job_.phase) {
    case Phase::kRunning:
      OpenCollection(failure);
      WaitForOtherTorchruns(failure);
      break;
    case Phase::kCollecting:
    case Phase::kJudging:
      AddFailure(failure);
      WaitForOtherTorchruns(failure);
      break;
    case Phase::kStopping:  // what dies now dies of our signal; the decision has been made
      if (job_.stop_purpose == StopPurpose::kSucceed && own_fault) AddFailure(failure);
      break;
    case Phase::kNew:
    case Phase::kAcquiring:
    case Phase::kReserving:
    case Phase::kEnded:
      return;
  }
  CloseCollectionWhenComplete();
}

void Transition::AddFailure(const RankFailure& failure) {
  if (const std::optional<size_t> index = KeepFailure(job_, failure)) changed_failures_.insert(*index);
}

// An exception beneath a torchrun may be about another's death, which its torchrun has yet to find.
void Transition::WaitForOtherTorchruns(const RankFailure& failure) {
  if (job_.phase != Phase::kCollecting || job_.hang || !failure.torchrun || !failure.exit || failure.exit->code != 1)
    return;
  job_.deadlines.collect =
      std::max(job_.deadlines.collect.value_or(now_.monotonic), now_.monotonic + kTorchrunsAreSlow);
}

void Transition::OpenCollection(const RankFailure& first) {
  ClearFailures();
  AddFailure(first);
  TellFailed(first);
  if (!IsAsync(job_)) {            // there it may yet turn out that the round is not concerned
    EndAllStages();                // a round that fails before it is ready
    job_.deadlines.start.reset();  // what has failed is being looked into; that others are not up yet is no cause
  }
  Collect(first);
}

void Transition::TellFailed(const RankFailure& failure) {
  const InstanceState& instance = job_.instances[Value(failure.instance)];
  Tell(
      "aimaster.instance.failed", instance.name,
      (failure.mpi_rank ? "MPI rank " + std::to_string(failure.mpi_rank->rank) + " (" + instance.name + ")"
                        : RankText(failure.rank)) +
          " on " + job_.nodes[instance.node].name +
          (failure.exit ? (failure.exit->signal ? " was killed by signal " + std::to_string(*failure.exit->signal)
                                                : " ended with exit code " + std::to_string(ShellStatus(*failure.exit)))
                        : " was lost: " + failure.lost_reason));
}

void Transition::Collect(const RankFailure& first) {
  const Wall ended = first.exit ? first.exit->time : now_.wall;
  const Duration ago = std::clamp<Duration>(now_.wall - ended, Duration::zero(), kCollectCap);
  job_.failure_began = {Monotonic{now_.monotonic.since_origin - ago}, Wall{now_.wall.since_epoch - ago}};
  job_.phase = Phase::kCollecting;
  job_.pending_stages.push_back({Stage::kDetect, job_.failure_began, ago});
  BeginStage(Stage::kCollect);
  job_.deadlines.collect = now_.monotonic + job_.spec.timing.collect_window;
  job_.deadlines.collect_cap = now_.monotonic + kCollectCap;
  ++job_.collection;
  job_.collecting_from.clear();
  for (const auto& [index, node] : job_.nodes) {
    if (node.joined && !node.lost) job_.collecting_from.insert(index);
  }
  Act(CollectOrder(job_));
}

void Transition::On(const EvidenceCollected& input) {
  if (job_.phase != Phase::kCollecting || job_.hang || input.collection != job_.collection) return;
  job_.collecting_from.erase(input.node);
  for (const Rank rank : input.dumping_core) {
    if (Value(rank) < job_.rank_ended.size() && !job_.rank_ended[Value(rank)]) job_.dumping_core.insert(rank);
  }
  CloseCollectionWhenComplete();
}

// The window closes when its time is over and nobody is waited for; at once when there is no rank left that could fail;
// and in any case at the cap.
void Transition::CloseCollectionWhenComplete() {
  if (job_.phase != Phase::kCollecting) return;
  const bool all_ended = job_.tallies.ranks_ended == job_.rank_ended.size();
  if (job_.hang) {  // its stacks are waited for (transition_hang.cc), unless nobody is left to have any
    if (all_ended) DecideHang(nullptr);
    return;
  }
  const bool waiting = job_.deadlines.collect || !job_.collecting_from.empty() || !job_.dumping_core.empty();
  if (waiting && !all_ended && job_.deadlines.collect_cap) return;
  job_.deadlines.collect.reset();
  job_.deadlines.collect_cap.reset();
  EndStage(Stage::kCollect);
  AskForJudgement();
}

void Transition::AskForJudgement() {
  job_.phase = Phase::kJudging;
  BeginStage(Stage::kDecide);
  ++job_.judgement_number;
  Act(JudgeOrder(job_));
}

void Transition::On(const FailureJudged& input) {
  if (job_.phase != Phase::kJudging || input.judgement_number != job_.judgement_number) return;
  const bool known = IsAbout(job_, input.judgement) &&
                     std::ranges::all_of(input.others, [this](const Judgement& j) { return IsAbout(job_, j); });
  if (!known) return;
  if (IsWorkDone()) return Succeed();
  if (input.apart) {
    DecideApart(input);
  } else {
    Decide(input.judgement);
  }
}

void Transition::Decide(const Judgement& judgement) {
  CarryOut(judgement, RuleOnFailure(job_, judgement, now_.monotonic));
}

// What it means for the job as a whole.
void Transition::CarryOut(const Judgement& judgement, Ruling ruling) {
  EndStage(Stage::kDecide);
  if (IsAsync(job_)) EndAllStages();
  std::vector<std::string> reasons = judgement.reasons;
  if (judgement.advised_interval) {
    reasons.push_back(AdviceText(job_.spec.fault_tolerance, *judgement.advised_interval));
    Tell("aimaster.hang.advice", "", reasons.back());
  }
  reasons.insert(reasons.end(), ruling.reasons.begin(), ruling.reasons.end());
  switch (ruling.verdict) {
    case Verdict::kRestart: {
      const bool isolate = ShouldIsolate(judgement, reasons);
      Record("Restart", ruling.summary, std::move(reasons));
      RestartJob(judgement, ruling.summary);
      job_.free_restarts += !ruling.is_charged;
      Pause(ruling);
      job_.records.back().isolated_node = isolate;
      if (isolate) {
        NodeState& node = job_.nodes[judgement.root_node];
        node.isolated = true;
        node.isolation_reason = judgement.message;
      }
      StopAll(StopPurpose::kRestart);
      return;
    }
    case Verdict::kRetryStart: {
      Record("RetryStart", ruling.summary, std::move(reasons));
      Tell("aimaster.round.start_retried", "", ruling.summary);
      ++job_.start_retries;
      KeepStagesInThisRound();
      StopAll(StopPurpose::kRetryStart);
      return;
    }
    case Verdict::kFail: {
      Record("Fail", ruling.summary, std::move(reasons));
      if (IsHang(judgement)) KeepRecord(judgement, ruling.summary);
      KeepStagesInThisRound();
      job_.reason_code = judgement.fault;
      job_.reason_message = ruling.summary;
      // A job that failed never exits as if it had not, even where its ranks ended with 0 because they were stopped.
      job_.exit_code = judgement.error_code.value_or(0) == 0 ? 1 : *judgement.error_code;
      StopAll(StopPurpose::kFail);
      return;
    }
  }
}

// A suspect node is left behind, unless it is the last one.
bool Transition::ShouldIsolate(const Judgement& judgement, std::vector<std::string>& reasons) {
  if (!judgement.node_suspect || judgement.severity != Severity::kIsolateNode) return false;
  const auto others = std::ranges::count_if(
      job_.nodes, [&](const auto& entry) { return entry.first != judgement.root_node && NodeUsable(entry.first); });
  const std::string& name = job_.nodes.at(judgement.root_node).name;
  if (others == 0) {
    reasons.push_back("node " + name + " is suspect, but it is the last one and is kept");
    Tell("aimaster.node.kept", name, reasons.back() + ": " + judgement.message);
    return false;
  }
  reasons.push_back("node " + name + " is suspect and is isolated: " + judgement.message);
  return true;
}

// Opens the next round and its record. The stages of the failure so far become the first ones of the new round.
void Transition::RestartJob(const Judgement& judgement, const std::string& summary) {
  RoundState& failed = ChangedRound();
  failed.end = job_.failure_began.wall;
  failed.result = RoundResult::kFailed;
  failed.reason = judgement.message;

  ++job_.restarts;
  KeepRecord(judgement, summary);

  job_.round = Next(job_.round);
  job_.start_retries = 0;
  job_.ranks_started.reset();
  job_.rounds.push_back({.round = job_.round, .start = now_, .stages = std::move(job_.pending_stages)});
  job_.pending_stages.clear();
  ChangedRound();
  job_.status = JobStatus::kRestarting;
  Tell("aimaster.round.restarting", job_.records.back().instance_name, job_.records.back().reason);
}

// Of a restart that begins.
void Transition::KeepRecord(const Judgement& judgement, const std::string& summary) {
  CloseRecord(RestartResult::kFailed);  // the round that the one before began was never ready
  RestartRecord record;
  record.restarts = job_.restarts;
  record.restart_time = now_;
  record.began = job_.failure_began;
  record.round = job_.round;
  record.reason = summary;
  record.judgement = judgement;
  record.node_name = job_.nodes[judgement.root_node].name;
  record.instance_name = job_.instances[Value(judgement.root_instance)].name;
  job_.records.push_back(std::move(record));
  changed_records_.insert(job_.records.size() - 1);
}

void Transition::Pause(const Ruling& ruling) {
  if (ruling.wait == Duration::zero()) return;
  job_.not_before = now_.monotonic + ruling.wait;
  Tell("aimaster.round.waiting", "",
       "waits " + FormatDuration(ruling.wait) + " before restart " + std::to_string(job_.restarts));
}

void Transition::On(const NodeLost& input) {
  const auto found = job_.nodes.find(input.node);
  if (found == job_.nodes.end() || found->second.lost || job_.phase == Phase::kEnded) return;
  found->second.lost = true;
  Tell("aimaster.node.lost", found->second.name, "node " + found->second.name + " is lost: " + input.reason);
  job_.collecting_from.erase(input.node);
  LoseRanksOf(input.node, input.reason);
  if (RoundIsUp() && job_.tallies.waiting > 0) StartWaiting();
  switch (job_.phase) {
    case Phase::kAcquiring:
    case Phase::kReserving:
      ReplaceNodes();
      break;
    case Phase::kStopping:
      ContinueWhenStopped();
      break;
    case Phase::kCollecting:
      CloseCollectionWhenComplete();
      break;
    case Phase::kRunning:
      SucceedWhenAllHave();
      break;
    case Phase::kJudging:
    case Phase::kNew:
    case Phase::kEnded:
      break;
  }
}

// The provider has confirmed that nothing runs there any more.
void Transition::LoseRanksOf(NodeIndex node, const std::string& reason) {
  for (size_t i = 0; i < job_.instances.size(); ++i) {
    const InstanceIndex index{static_cast<uint32_t>(i)};
    const InstanceState& instance = job_.instances[i];
    if (!instance.live || instance.node != node) continue;
    LoseSilentRanks(index, "node " + job_.nodes[node].name + " was lost: " + reason, true);
    SetLive(index, false);
    const bool succeeded = instance.ranks_succeeded == instance.ranks;
    SetStatus(index, succeeded ? InstanceStatus::kSucceeded : InstanceStatus::kFailed);
    if (RenewalOf(instance) == Renewal::kStopping) ContinueAlone(index);
  }
}

// No rank may vanish without a word: one whose instance is gone and of which no exit was reported has failed.
void Transition::LoseSilentRanks(InstanceIndex index, const std::string& reason, bool node_lost) {
  const InstanceState& instance = job_.instances[Value(index)];
  const uint32_t first = Value(instance.first_rank);
  for (uint32_t rank = first; rank < first + instance.ranks; ++rank) {
    if (job_.rank_ended[rank]) continue;
    On(RankFailed{{.rank = Rank{rank},
                   .instance = index,
                   .attempt = instance.attempt,
                   .node = instance.node,
                   .exit = std::nullopt,
                   .lost_reason = reason,
                   .node_lost = node_lost,
                   .stopped_by_us = job_.phase == Phase::kStopping || RenewalOf(instance) == Renewal::kStopping}});
  }
}

}  // namespace aimaster
