#include "engine/limits.h"

#include <algorithm>
#include <cstdio>

#include "core/count.h"
#include "core/quote.h"
#include "core/roles.h"
#include "engine/backoff.h"

namespace aimaster {
namespace {

std::string Number(uint64_t number) { return std::to_string(number); }

std::string Share(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", share);
  return text;
}

// The instances that failed by their own fault in this failure.
std::vector<InstanceIndex> RootInstances(const Judgement& judgement) {
  std::vector<InstanceIndex> roots;
  for (const FailureDetail& detail : judgement.details) {
    if (detail.is_root) roots.push_back(detail.instance);
  }
  if (roots.empty()) roots.push_back(judgement.root_instance);
  std::ranges::sort(roots);
  roots.erase(std::ranges::unique(roots).begin(), roots.end());
  return roots;
}

// The ranks of mpirun share an instance, and are places of their own all the same.
std::string MpiPlace(const Judgement& judgement) {
  const auto root = std::ranges::find(judgement.details, true, &FailureDetail::is_root);
  if (root == judgement.details.end() || !root->mpi_rank) return "";
  return "/" + Number(uint64_t{*root->mpi_rank});
}

// Who failed and how, for counting repetitions: the instance and what it ended with. What could not be started for want
// of a node has not ended a second time as it did before.
std::string PlaceAndCode(const JobState& job, const Judgement& judgement) {
  const bool is_end = judgement.error_code && judgement.source != ErrorSource::kProvider;
  const std::string code = is_end ? Number(static_cast<uint64_t>(*judgement.error_code)) : judgement.fault;
  return job.instances[Value(judgement.root_instance)].name + MpiPlace(judgement) + "|" + code;
}

bool IsWorkerLike(Role role) { return role == Role::kWorker || role == Role::kMaster || role == Role::kChief; }

class Judge {
 public:
  Judge(JobState& job, const Judgement& judgement, Monotonic now) : job_(job), judgement_(judgement), now_(now) {}

  Ruling RuleAlone() {
    is_alone_ = true;
    if (judgement_.never_started) {
      Fail("the command could not be executed, and would not be the next time");
    } else if (MayRetryStart()) {
      RetryStart();
    } else if (judgement_.is_consequence && !KeepsResults(job_.spec)) {
      ruling_.reasons.push_back("it only followed another failure, so it counts for no limit");
      RestartAlone();
    } else if (IsFree()) {
      if (PolicyAllows()) {
        ChargeNothing();
        RestartAlone();
      }
    } else {
      Count();
      if (PolicyAllows() && !OverSameError() && !OverFailureRate() && !OverNoProgress()) RestartAlone();
    }
    WaitWhenInVain();
    return std::move(ruling_);
  }

  Ruling Rule() {
    if (IsAsync(job_)) SayWhyNotAlone();
    if (judgement_.never_started) {
      Fail("the command could not be executed, and would not be the next time");
    } else if (MayRetryStart()) {
      RetryStart();
    } else if (IsFree()) {
      if (PolicyAllows() && RestartAllowed()) {
        ChargeNothing();
        Restart();
      }
    } else {
      Count();
      if (PolicyAllows() && RestartAllowed() && !OverSameError() && !OverFailureRate() && !OverRestarts() &&
          !OverNoProgress()) {
        Restart();
      }
    }
    WaitWhenInVain();
    return std::move(ruling_);
  }

  Ruling RuleHang() {
    if (IsQuick()) {
      times_quick_ = ++job_.quick_failures[judgement_.fault];
    } else {
      job_.quick_failures.erase(judgement_.fault);
    }
    job_.outside_failures = 0;
    if (RestartAllowed() && !OverRestarts() && !OverNoProgress()) Restart();
    return std::move(ruling_);
  }

 private:
  const FaultToleranceParameters& Parameters() const { return job_.spec.fault_tolerance; }

  void Fail(const std::string& why) {
    ruling_.verdict = Verdict::kFail;
    ruling_.reasons.push_back(why);
    ruling_.summary = judgement_.message + " (" + why + ")";
  }

  void Restart() {
    const std::string number = "restart " + Number(job_.restarts + 1);
    ruling_.verdict = Verdict::kRestart;
    ruling_.summary =
        (ruling_.is_charged ? number + " of at most " + Number(Parameters().max_num_of_job_restart + job_.free_restarts)
                            : number + ", which counts for no limit") +
        ": " + judgement_.message;
  }

  void ChargeNothing() {
    ruling_.is_charged = false;
    ruling_.reasons.push_back(
        "the node was wanted for something else (pre-emption): nobody's fault, and it counts for no limit");
  }

  void RestartAlone() {
    ruling_.verdict = Verdict::kRestart;
    ruling_.summary = Instance().name + " is restarted alone: " + judgement_.message;
  }

  const InstanceState& Instance() const { return job_.instances[Value(judgement_.root_instance)]; }

  void SayWhyNotAlone() {
    for (const InstanceState& instance : job_.instances) {
      if (RenewalOf(instance) != Renewal::kFailed || RestartsAlone(job_.spec, instance.role)) continue;
      ruling_.reasons.push_back(instance.name + " has failed, and a " + std::string(Name(instance.role)) +
                                " can't be restarted alone");
      return;
    }
  }

  // Since when the job, or the instance, has been running. What the round waited before that is no progress.
  Monotonic Start() const {
    if (is_alone_ && Instance().own) return Instance().own->start;
    return job_.ranks_started.value_or(job_.rounds.back().start.monotonic);
  }
  bool IsQuick() const { return now_ - Start() < kQuickFailureWithin; }

  // What says of itself that it was pre-empted as soon as it runs, again and again, may only say so.
  bool IsFree() const {
    if (!IsPreemption(judgement_)) return false;
    const std::optional<OwnLife>& own = Instance().own;
    const uint32_t before = is_alone_ && own ? own->quick_failures : job_.outside_failures;
    return !IsQuick() || before < kFreeInARowMax;
  }

  // Who fails again as soon as it runs gains nothing by haste: a worker alone, whatever it fails of; a job, where the
  // world outside is to blame.
  void WaitWhenInVain() {
    if (ruling_.verdict != Verdict::kRestart) return;
    std::optional<OwnLife>& own = job_.instances[Value(judgement_.root_instance)].own;
    if (is_alone_ && !own) return;
    uint32_t& times = is_alone_ ? own->quick_failures : job_.outside_failures;
    times = IsQuick() && (is_alone_ || IsOfTheWorldOutside(judgement_)) ? times + 1 : 0;
    ruling_.wait = BackoffAfter(times);
    if (ruling_.wait == Duration::zero()) return;
    ruling_.reasons.push_back("it failed within its first minute " + Number(times) + " times in a row" +
                              (is_alone_ ? "" : ", and not by its own fault (" + judgement_.category + ")") +
                              ": waits " + FormatDuration(ruling_.wait) + " before it starts again");
  }

  bool RestartAllowed() {
    if (Parameters().enable_job_restart) return true;
    Fail("a restart is not allowed: --enable-job-restart=False");
    return false;
  }

  bool MayRetryStart() const {
    if (is_alone_ && Instance().own && Instance().own->started_alone)
      return false;                              // the round's port is in use, by us
    if (!MeetAtMaster(job_.spec)) return false;  // it was given no port
    const Monotonic start = job_.ranks_started.value_or(job_.rounds.back().start.monotonic);
    return judgement_.address_in_use && now_ - start < kStartFailureWithin && job_.start_retries < kStartRetriesMax;
  }

  void RetryStart() {
    ruling_.verdict = Verdict::kRetryStart;
    ruling_.reasons.push_back("an address was in use at the start of the round: the start failed, not the job; start " +
                              Number(job_.start_retries + 1) + " of at most " + Number(kStartRetriesMax) +
                              " in place, with another port; no restart is counted");
    ruling_.summary = "start again in place with another port";
  }

  void Count() {
    const std::string key = PlaceAndCode(job_, judgement_);
    times_same_error_ = ++job_.same_error[key];
    if (IsQuick()) {
      times_quick_ = ++job_.quick_failures[key];
    } else {
      job_.quick_failures.erase(key);
    }
    step_ = StepOfRoot();
    if (step_) {
      SameStep& same = job_.same_step[key];
      times_same_step_ = same.times = same.step == *step_ ? same.times + 1 : 1;
      same.step = *step_;
    } else {
      job_.same_step.erase(key);
    }
    for (const InstanceIndex instance : RootInstances(judgement_)) {
      if (IsWorkerLike(job_.instances[Value(instance)].role)) job_.failed_workers.insert(instance);
    }
  }

  // Ranks of MPI print and tell beneath the launcher, wherever they run.
  bool SpeaksForRoot(const RankFailure& failure) const {
    return failure.instance == judgement_.root_instance || (failure.is_launcher && !MpiPlace(judgement_).empty());
  }

  bool IsOfRoot(const RankFailure& failure) const {
    if (failure.is_launcher && SpeaksForRoot(failure)) return true;
    return failure.instance == judgement_.root_instance &&
           (!judgement_.root_rank || failure.rank == *judgement_.root_rank);
  }

  // How far the training was, as the one who failed told; where all failed alike, as any of that instance did.
  std::optional<uint64_t> StepOfRoot() const {
    std::optional<uint64_t> step;
    for (const RankFailure& failure : job_.failures) {
      if (IsOfRoot(failure) && failure.step) step = std::max(step.value_or(0), *failure.step);
    }
    return step;
  }

  // A text of the job's own in the output of the instance that failed; empty: there is none.
  std::string_view RetryableText() const {
    for (const RankFailure& failure : job_.failures) {
      if (SpeaksForRoot(failure) && !failure.retryable_text.empty()) return failure.retryable_text;
    }
    return {};
  }

  bool PolicyAllows() {
    switch (Parameters().fault_tolerant_policy) {
      case FaultTolerantPolicy::kNever:
        Fail("no failure is retryable: --fault-tolerant-policy=Never");
        return false;
      case FaultTolerantPolicy::kOnFailure:
        ruling_.reasons.push_back("every failure is retryable: --fault-tolerant-policy=OnFailure");
        return true;
      case FaultTolerantPolicy::kExitCodeAndErrorMsg:
        return ExitCodeAndErrorMsgAllows();
    }
    return false;
  }

  bool ExitCodeAndErrorMsgAllows() {
    if (const std::string_view text = RetryableText(); !text.empty()) {
      ruling_.reasons.push_back("retryable by --fault-tolerant-policy=ExitCodeAndErrorMsg: the output of " +
                                Instance().name + " holds " + Quoted(text) + ", which the job calls retryable");
      return true;
    }
    switch (judgement_.retryable) {
      case Retryable::kYes:
        ruling_.reasons.push_back("retryable by --fault-tolerant-policy=ExitCodeAndErrorMsg: " + judgement_.fault);
        return true;
      case Retryable::kNo:
        Fail("not retryable by --fault-tolerant-policy=ExitCodeAndErrorMsg: " + judgement_.fault);
        return false;
      case Retryable::kOncePerPlace:
        if (times_same_error_ <= 1) {
          ruling_.reasons.push_back("retryable once per place, and this is the first time here: " + judgement_.fault);
          return true;
        }
        Fail("not retryable any more: " + judgement_.fault + " for the " + Number(times_same_error_) +
             ". time at the same place");
        return false;
    }
    return false;
  }

  bool OverSameError() {
    const uint32_t limit = Parameters().max_num_of_same_error;
    if (times_same_error_ > limit) {
      Fail("the same error at the same instance for the " + Number(times_same_error_) +
           ". time, over --max-num-of-same-error=" + Number(limit));
      return true;
    }
    ruling_.reasons.push_back("same error " + Number(times_same_error_) + " of at most " + Number(limit) + " times");
    return false;
  }

  bool OverFailureRate() {
    const double limit = Parameters().max_tolerated_failure_rate;
    if (limit < 0) return false;
    const auto workers =
        std::ranges::count_if(job_.instances, [](const InstanceState& i) { return IsWorkerLike(i.role); });
    const std::string share = Number(job_.failed_workers.size()) + " of " + Number(static_cast<uint64_t>(workers)) +
                              " workers failed by their own fault";
    if (static_cast<double>(job_.failed_workers.size()) > limit * static_cast<double>(workers) + 1e-9) {
      Fail(share + ", over --max-tolerated-failure-rate=" + Share(limit));
      return true;
    }
    ruling_.reasons.push_back(share + ", within --max-tolerated-failure-rate=" + Share(limit));
    return false;
  }

  bool OverRestarts() {
    const uint32_t limit = Parameters().max_num_of_job_restart;
    const uint32_t charged = job_.restarts - std::min(job_.restarts, job_.free_restarts);
    const std::string free =
        job_.free_restarts == 0 ? "" : " (" + Number(job_.free_restarts) + " after pre-emptions are not counted)";
    if (charged >= limit) {
      Fail("the job was restarted " + aimaster::Count(charged, "time") + free +
           ", the limit is --max-num-of-job-restart=" + Number(limit));
      return true;
    }
    ruling_.reasons.push_back(Number(charged) + " of at most " + Number(limit) + " restarts used" + free);
    return false;
  }

  bool OverNoProgress() {
    const uint32_t limit = Parameters().no_progress_limit;
    if (limit == 0 || std::max(times_quick_, times_same_step_) < limit) return false;
    const bool is_step = times_same_step_ >= limit;
    Fail("no progress: the same root cause for the " + Number(is_step ? times_same_step_ : times_quick_) + ". time " +
         (is_step ? "at step " + Number(step_.value_or(0))
                  : std::string("within the first minute of ") + (is_alone_ ? "its life" : "a round")) +
         ", --no-progress-limit=" + Number(limit));
    return true;
  }

  JobState& job_;
  const Judgement& judgement_;
  Monotonic now_;
  bool is_alone_ = false;
  Ruling ruling_;
  uint32_t times_same_error_ = 0;
  uint32_t times_quick_ = 0;
  uint32_t times_same_step_ = 0;
  std::optional<uint64_t> step_;
};

}  // namespace

Ruling RuleOnFailure(JobState& job, const Judgement& judgement, Monotonic now) {
  return Judge(job, judgement, now).Rule();
}

Ruling RuleOnInstance(JobState& job, const Judgement& judgement, Monotonic now) {
  return Judge(job, judgement, now).RuleAlone();
}

Ruling RuleOnHang(JobState& job, const Judgement& judgement) {
  return Judge(job, judgement, job.failure_began.monotonic).RuleHang();
}

}  // namespace aimaster
