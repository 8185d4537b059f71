// Limits are kept, and used: the job is restarted as long as policy and limits of the submitted job allow it, and not
// once more. The rules are written here a second time, from what the parameters promise.
#include <map>
#include <set>

#include "sim/checkers.h"
#include "sim/world.h"

namespace aimaster::sim {
namespace {

using namespace std::chrono_literals;

class RestartLimit : public Watcher {
 public:
  explicit RestartLimit(World& world) : Watcher(world), limits_(world.scenario.spec.fault_tolerance) {}
  std::string_view name() const override { return "restart-limit"; }

  void OnDurable(const DurableStep& step) override {
    for (const Decision& decision : step.result.decisions) {
      const bool restarts = decision.kind == "Restart";
      if (!restarts && decision.kind != "Fail") continue;
      Ruled(step, restarts);
    }
  }

 private:
  void Ruled(const DurableStep& step, bool restarts) {
    const auto* judged = std::get_if<FailureJudged>(&step.input.event);
    const bool may_restart = judged ? MayRestart(judged->judgement, step, restarts) : MayStartAgain(step);
    if (restarts && restarts_ >= limits_.max_num_of_job_restart) {
      return Complain("restart " + std::to_string(restarts_ + 1) + ", and the limit is " +
                      std::to_string(limits_.max_num_of_job_restart));
    }
    if (restarts != may_restart) {
      return Complain(restarts
                          ? "the job is restarted, and its policy or a limit forbids it"
                          : "the job fails, and neither its policy nor a limit demands it: " + step.job.reason_message);
    }
    restarts_ += restarts;
  }

  bool MayRestart(const Judgement& judgement, const DurableStep& step, bool restarted) {
    if (judgement.never_started) return false;
    const std::string place = std::to_string(Value(judgement.root_instance)) + "|" +
                              (judgement.error_code ? std::to_string(*judgement.error_code) : judgement.fault);
    const uint32_t times = ++same_error_[place];
    const auto& rounds = step.job.rounds;
    const RoundState& round = rounds[rounds.size() - (restarted ? 2 : 1)];
    const bool is_quick = step.input.at.monotonic - round.start.monotonic < 1min;
    uint32_t& quick = quick_[place];
    quick = is_quick ? quick + 1 : 0;
    bool any_root = false;
    for (const FailureDetail& detail : judgement.details) {
      if (!detail.is_root) continue;
      any_root = true;
      AddFailedWorker(step.job, detail.instance);
    }
    if (!any_root) AddFailedWorker(step.job, judgement.root_instance);

    const bool by_policy =
        limits_.fault_tolerant_policy == FaultTolerantPolicy::kOnFailure ||
        (limits_.fault_tolerant_policy == FaultTolerantPolicy::kExitCodeAndErrorMsg &&
         (judgement.retryable == Retryable::kYes || (judgement.retryable == Retryable::kOncePerPlace && times == 1)));
    const bool progresses = limits_.no_progress_limit == 0 || !is_quick || quick < limits_.no_progress_limit;
    return by_policy && WithinCounts(times) && WithinRate(step.job) && progresses;
  }

  // A start that failed for nobody's fault: every one is retryable, and what counts is where it failed.
  bool MayStartAgain(const DurableStep& step) const {
    uint32_t times = 0;
    for (const auto& [place, count] : step.job.same_error) {
      if (place.ends_with("|StartTimeout") || place.ends_with("|NodeTimeout") || place.ends_with("|NoPort")) {
        times = std::max(times, count);
      }
    }
    const bool by_policy = limits_.fault_tolerant_policy != FaultTolerantPolicy::kNever;
    // Failed workers and quick failures are counted too; where these limits are set, both answers may be right.
    const bool is_free = limits_.max_tolerated_failure_rate < 0 && limits_.no_progress_limit == 0;
    const bool was_restarted = step.result.decisions.back().kind == "Restart" || step.job.restarts > restarts_;
    return is_free ? by_policy && WithinCounts(times) : was_restarted;
  }

  bool WithinCounts(uint32_t times) const {
    return limits_.enable_job_restart && times <= limits_.max_num_of_same_error &&
           restarts_ < limits_.max_num_of_job_restart;
  }

  void AddFailedWorker(const JobState& job, InstanceIndex instance) {
    const Role role = job.instances[Value(instance)].role;
    if (role == Role::kWorker || role == Role::kMaster || role == Role::kChief) failed_workers_.insert(instance);
  }

  bool WithinRate(const JobState& job) const {
    if (limits_.max_tolerated_failure_rate < 0) return true;
    const double allowed = limits_.max_tolerated_failure_rate * static_cast<double>(job.instances.size());
    return static_cast<double>(failed_workers_.size()) <= allowed + 1e-9;
  }

  const FaultToleranceParameters& limits_;
  uint32_t restarts_ = 0;
  std::map<std::string, uint32_t> same_error_, quick_;
  std::set<InstanceIndex> failed_workers_;
};

}  // namespace

std::unique_ptr<Watcher> MakeRestartLimitChecker(World& world) { return std::make_unique<RestartLimit>(world); }

}  // namespace aimaster::sim
