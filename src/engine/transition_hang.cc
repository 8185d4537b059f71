// Hanging: from the finding that a job stands still to the decision.
//
//   kRunning ──HangFound──▶ kCollecting, its call stacks are taken ──they are there, or --stack-timeout──▶ decided
//
// It shares the phase of a failure that is being looked into, since everything else that may happen means the same in
// both: a rank that dies meanwhile is noted, a stop is carried out, a job that is done has succeeded. A phase of its
// own was rejected for that. But the finding stands: what dies while the job hangs dies of the hang, or of the tool
// that looks at it.
#include <algorithm>

#include "core/count.h"
#include "core/roles.h"
#include "engine/failures.h"
#include "engine/layout.h"
#include "engine/limits.h"
#include "engine/orders.h"
#include "engine/transition.h"

namespace aimaster {
namespace {

ErrorSource SourceOf(HangKind kind) {
  switch (kind) {
    case HangKind::kSilence:
      return ErrorSource::kHang;
    case HangKind::kExit:
      return ErrorSource::kExitHang;
    case HangKind::kCommunication:
      break;
  }
  return ErrorSource::kC4d;
}

}  // namespace

void Transition::On(const HangFound& input) {
  if (job_.phase != Phase::kRunning || input.round != job_.round || !IsLookedFor(input) || IsWorkDone()) return;
  const bool leaves_running =
      input.is_advancing && job_.spec.fault_tolerance.hang_requires == HangRequires::kLogAndProgress;
  if (leaves_running) return TellAdvancing(input);
  BeginHang(input);
}

// A finding may be stepped again with other parameters, by which it would not have been one.
bool Transition::IsLookedFor(const HangFound& hang) const {
  const FaultToleranceParameters& parameters = job_.spec.fault_tolerance;
  if (IsAsync(job_) || hang.kind == HangKind::kCommunication) return false;
  if (hang.kind == HangKind::kExit) {
    return parameters.enable_job_exit_hang_detection && job_.first_success &&
           now_.monotonic - *job_.first_success >= parameters.job_exit_hang_interval;
  }
  const Duration interval = hang.set_by ? hang.interval : Duration(parameters.job_hang_interval);
  return parameters.enable_job_hang_detection && hang.lasts >= interval;
}

// Once for each silence: a master that took over finds the same one again.
void Transition::TellAdvancing(const HangFound& hang) {
  const Monotonic since{now_.monotonic.since_origin - hang.lasts};
  if (job_.told_advancing && since <= *job_.told_advancing) return;
  job_.told_advancing = now_.monotonic;
  const std::string summary = "silent but advancing: " + SilenceText(hang) +
                              "; the steps that its ranks tell go on, and it is left running "
                              "(--hang-requires=log+progress)";
  Tell("aimaster.hang.advancing", "", summary);
  Record("LeaveRunning", summary, {});
}

void Transition::BeginHang(const HangFound& hang) {
  ClearFailures();
  EndAllStages();  // a round that hangs before it is ready
  const Duration lasts =
      std::clamp<Duration>(hang.lasts, Duration::zero(), now_.monotonic - job_.ranks_started.value_or(now_.monotonic));
  job_.failure_began = {Monotonic{now_.monotonic.since_origin - lasts}, Wall{now_.wall.since_epoch - lasts}};
  job_.hang = hang;
  job_.phase = Phase::kCollecting;
  job_.deadlines.start.reset();
  job_.pending_stages.push_back({Stage::kDetect, job_.failure_began, lasts});
  BeginStage(Stage::kCollect);
  Tell(hang.kind == HangKind::kExit ? "aimaster.hang.exit-found" : "aimaster.hang.found", "", HangText(hang));
  if (!CaptureStacksOf("the job hangs")) DecideHang(nullptr);
}

void Transition::DecideHang(const StacksCaptured* stacks) {
  if (IsWorkDone()) return Succeed();  // meanwhile
  const HangFound hang = *std::exchange(job_.hang, std::nullopt);
  EndStage(Stage::kCollect);
  job_.phase = Phase::kJudging;
  BeginStage(Stage::kDecide);
  const Judgement judgement = JudgeHang(hang, stacks);
  CarryOut(judgement, RuleOnHang(job_, judgement));
}

Judgement Transition::JudgeHang(const HangFound& hang, const StacksCaptured* stacks) const {
  const bool is_silence = hang.kind == HangKind::kSilence;
  const std::vector<Rank> running = RunningRanks();
  std::vector<Rank> culprits = stacks == nullptr ? std::vector<Rank>() : stacks->culprits;
  std::erase_if(culprits, [this](Rank rank) { return Value(rank) >= job_.rank_ended.size(); });

  // Who is named where nobody is to blame: the quietest, or the first that does not end.
  Rank root = culprits.empty() ? running.empty() ? Rank{} : running.front() : culprits.front();
  // Who has nothing to print is none to look at.
  const bool is_quietest_known = is_silence && hang.quietest && std::ranges::binary_search(running, *hang.quietest);
  if (culprits.empty() && is_quietest_known) root = *hang.quietest;

  Judgement judgement;
  if (!culprits.empty() || hang.kind == HangKind::kExit) judgement.root_rank = root;
  judgement.root_instance = job_.instance_of_rank[Value(root)];
  judgement.root_node = job_.instances[Value(judgement.root_instance)].node;
  judgement.fault = FaultOf(hang);
  judgement.category = "hang";
  judgement.source = SourceOf(hang.kind);
  judgement.retryable = Retryable::kYes;
  judgement.message = HangText(hang);
  if (!culprits.empty() && hang.kind == HangKind::kCommunication) {
    judgement.message += "; the rarest call stack: " + stacks->where;  // of whom, the summary among the reasons says
  } else if (!culprits.empty()) {
    judgement.message += "; " + CulpritsText(culprits, stacks->where);
  } else if (is_quietest_known) {
    judgement.message += "; longest silent: " + RankText(root) + " on " + job_.nodes.at(judgement.root_node).name;
  }
  judgement.reasons.push_back(judgement.message);
  if (hang.kind != HangKind::kCommunication) {
    const std::string flag = is_silence ? "--job-hang-interval" : "--job-exit-hang-interval";
    judgement.reasons.push_back("the interval is " + FormatDuration(hang.interval) + ", " +
                                (hang.set_by ? "set through the SDK on node " + NodeText(*hang.set_by) : "of " + flag));
  }
  if (hang.is_advancing) {
    judgement.reasons.push_back(
        "silent but advancing: the steps that its ranks tell go on; by --hang-requires=log that makes no difference, "
        "with log+progress it would be left running");
  }
  judgement.reasons.push_back(stacks == nullptr
                                  ? "no call stacks of it: they were not there in time, or no rank was left"
                                  : "call stacks of " + std::to_string(stacks->ranks_answered) + " of " +
                                        Count(stacks->ranks_asked, "rank") + ": " + stacks->summary);
  if (stacks != nullptr) judgement.stacks = stacks->path;
  for (const RankFailure& failure : job_.failures) {
    judgement.reasons.push_back(RankText(failure.rank) + " ended while the call stacks were being taken");
    if (judgement.reasons.size() > kNamesInTextMax) break;
  }

  BlameCommunication(judgement);
  if (!judgement.details.empty()) culprits.clear();  // who is named by that is known better
  if (judgement.details.empty() && culprits.empty()) culprits.push_back(root);
  for (const Rank rank : culprits) {
    if (judgement.details.size() == kDetailsMax) break;
    judgement.details.push_back(HangDetail(judgement, rank));
  }
  judgement.failed_ranks = static_cast<uint32_t>(running.size());
  return judgement;
}

FailureDetail Transition::HangDetail(const Judgement& judgement, Rank rank) const {
  const InstanceIndex instance = job_.instance_of_rank[Value(rank)];
  return {.rank = rank,
          .instance = instance,
          .node = job_.instances[Value(instance)].node,
          .is_root = true,
          .error_code = 0,
          .fault = judgement.fault,
          .message = judgement.message,
          .source = judgement.source,
          .mpi_rank = std::nullopt};
}

std::string Transition::FaultOf(const HangFound& hang) const {
  switch (hang.kind) {
    case HangKind::kSilence:
      return "JobHang";
    case HangKind::kExit:
      return "JobExitHang";
    case HangKind::kCommunication:
      break;
  }
  return job_.communication.empty() ? "JobHang" : job_.communication.front().kind;
}

std::string Transition::HangText(const HangFound& hang) const {
  switch (hang.kind) {
    case HangKind::kSilence:
      return SilenceText(hang);
    case HangKind::kExit:
      return ExitHangText(hang);
    case HangKind::kCommunication:
      break;
  }
  return job_.communication.empty() ? "the job hangs"
                                    : "the job hangs: " + CommunicationText(job_.communication.front());
}

std::string Transition::SilenceText(const HangFound& hang) const {
  const size_t running = job_.rank_ended.size() - job_.tallies.ranks_ended;
  const std::string who = job_.rank_ended.size() == 1         ? "its only rank"
                          : running == 1                      ? "the last rank"
                          : running == job_.rank_ended.size() ? "all " + Count(running, "rank")
                                                              : "all " + Count(running, "remaining rank");
  return "the job hangs: " + who + " silent for " + FormatDuration(hang.lasts);
}

std::string Transition::ExitHangText(const HangFound& hang) const {
  const std::vector<Rank> running = RunningRanks();
  std::string names;
  for (size_t i = 0; i < std::min(running.size(), kNamesInTextMax); ++i) {
    names += (i == 0 ? "" : ", ") + RankText(running[i]);
  }
  if (running.size() > kNamesInTextMax) names += " and " + std::to_string(running.size() - kNamesInTextMax) + " more";
  return "the job hangs at its exit: the first rank ended well " + FormatDuration(hang.lasts) + " ago, and " + names +
         (running.size() == 1 ? " has" : " have") + " not ended";
}

std::string Transition::CulpritsText(const std::vector<Rank>& culprits, const std::string& where) const {
  std::string names = RankText(culprits.front());
  if (culprits.size() > 1) names += " and " + std::to_string(culprits.size() - 1) + " more";
  const InstanceIndex first = job_.instance_of_rank[Value(culprits.front())];
  return names + " on " + job_.nodes.at(job_.instances[Value(first)].node).name +
         (culprits.size() == 1 ? " is in " : " are in ") + where;
}

// Those that are waited for: who has no end of its own is not.
std::vector<Rank> Transition::RunningRanks() const {
  std::vector<Rank> ranks;
  for (size_t rank = 0; rank < job_.rank_ended.size(); ++rank) {
    const InstanceState& instance = job_.instances[Value(job_.instance_of_rank[rank])];
    if (job_.rank_ended[rank] || !CountsForSuccess(job_.spec, instance.role, instance.index_in_role)) continue;
    ranks.push_back(Rank{static_cast<uint32_t>(rank)});
  }
  return ranks;
}

std::string Transition::NodeText(NodeIndex node) const {
  const auto found = job_.nodes.find(node);
  return found == job_.nodes.end() ? std::to_string(Value(node)) : found->second.name;
}

}  // namespace aimaster
