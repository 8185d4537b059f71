// Limits are kept, and used: the job is restarted as long as policy and limits of the submitted job allow it, and not
// once more. The rules are written here a second time, from what the parameters promise.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/roles.h"
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
    const auto* judged = std::get_if<FailureJudged>(&step.input.event);
    if (judged && judged->apart && !step.result.decisions.empty()) {
      RuledApart(*judged, step);
    } else {
      for (const Decision& decision : step.result.decisions) Ruled(decision, step, judged);
    }
    for (; records_ < step.job.records.size(); ++records_) {
      const RestartRecord& record = step.job.records[records_];
      const bool is_start = judged == nullptr && !IsHang(record.judgement);  // that failed
      if (is_start) AddFailedWorker(step.job, record.judgement.root_instance);
      if (record.scope == RestartScope::kInstance) started_alone_.insert(record.judgement.root_instance);
    }
    for (const Decision& decision : step.result.decisions) {
      if (decision.kind == "Restart" || decision.kind == "RetryStart") started_alone_.clear();
    }
    const bool is_new_round = std::exchange(round_, step.job.round) != step.job.round;
    const bool begins = MeetAtMaster(step.job.spec)
                            ? std::holds_alternative<PortReserved>(step.input.event) && !step.result.actions.empty()
                            : is_new_round;
    if (begins) all_started_ = step.input.at.monotonic;
    for (const Action& action : step.result.actions) {
      if (const auto* start = std::get_if<StartInstance>(&action)) starts_[start->instance] = step.input.at.monotonic;
    }
  }

 private:
  void Ruled(const Decision& decision, const DurableStep& step, const FailureJudged* judged) {
    const bool restarts = decision.kind == "Restart";
    if (decision.kind == "RestartInstance") {  // it did not start, or its node did not come
      const uint32_t times = TimesNotStarted(step.job);
      if (limits_.fault_tolerant_policy == FaultTolerantPolicy::kNever || times > limits_.max_num_of_same_error) {
        Complain("an instance that did not start is started again, and its policy or a limit forbids it");
      }
      return;
    }
    if (!restarts && decision.kind != "Fail") return;
    const bool is_hang = records_ < step.job.records.size() && IsHang(step.job.records.back().judgement);
    const bool may_restart = judged    ? MayRestart(judged->judgement, step)
                             : is_hang ? MayRestartHanging(restarts)
                                       : MayStartAgain(step, restarts);
    const bool is_free = judged != nullptr && judged->judgement.category == "preemption";
    if (restarts && !is_free && restarts_ >= limits_.max_num_of_job_restart) {
      return Complain("restart " + std::to_string(restarts_ + 1) + ", and the limit is " +
                      std::to_string(limits_.max_num_of_job_restart));
    }
    if (restarts != may_restart) {
      return Complain(restarts
                          ? "the job is restarted, and its policy or a limit forbids it"
                          : "the job fails, and neither its policy nor a limit demands it: " + step.job.reason_message);
    }
    restarts_ += restarts && !is_free;
  }

  // Each instance by itself; the first that may not go on takes the job along, before anything is restarted.
  void RuledApart(const FailureJudged& judged, const DurableStep& step) {
    std::vector<const Judgement*> all{&judged.judgement};
    for (const Judgement& other : judged.others) all.push_back(&other);
    const std::string decided = step.result.decisions.front().kind;
    if (decided == "Succeed") return;  // it failed when all was done
    const uint32_t retries = step.job.start_retries - (decided == "RetryStart");
    std::string expected = "RestartInstance";
    for (const Judgement* judgement : all) {
      const InstanceIndex index = judgement->root_instance;
      if (!RestartsAlone(step.job.spec, step.job.instances[Value(index)].role)) continue;
      const bool is_start = MeetAtMaster(step.job.spec) && step.input.at.monotonic - all_started_ < 2min &&
                            retries < 5 && !started_alone_.contains(index);
      std::string verdict = "RestartInstance";
      if (judgement->never_started) {
        verdict = "Fail";
      } else if (judgement->address_in_use && is_start) {
        verdict = "RetryStart";
      } else if ((!judgement->is_consequence || KeepsResults(step.job.spec)) &&
                 !MayGoOn(*judgement, step, starts_[index])) {
        verdict = "Fail";
      }
      if (expected == "RestartInstance") expected = verdict;
    }
    if (decided != expected) Complain("the decision is " + decided + ", and policy and limits demand " + expected);
  }

  bool MayRestart(const Judgement& judgement, const DurableStep& step) {
    if (judgement.never_started) return false;
    const bool goes_on = MayGoOn(judgement, step, all_started_);
    return goes_on && (judgement.category == "preemption" ? limits_.enable_job_restart : RestartsAreLeft());
  }

  // Counts it, and asks the policy and what limits failures.
  bool MayGoOn(const Judgement& judgement, const DurableStep& step, Monotonic since) {
    if (judgement.category == "preemption") return limits_.fault_tolerant_policy != FaultTolerantPolicy::kNever;
    const std::string place = std::to_string(Value(judgement.root_instance)) + "|" +
                              (judgement.error_code ? std::to_string(*judgement.error_code) : judgement.fault);
    const uint32_t times = ++same_error_[place];
    const bool is_quick = step.input.at.monotonic - since < 1min;
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
    return by_policy && times <= limits_.max_num_of_same_error && WithinRate(step.job) && progresses;
  }

  static uint32_t TimesNotStarted(const JobState& job) {
    uint32_t times = 0;
    for (const auto& [place, count] : job.same_error) {
      if (place.ends_with("|StartTimeout") || place.ends_with("|NodeTimeout") || place.ends_with("|NoPort") ||
          place.ends_with("|AddressLost")) {
        times = std::max(times, count);
      }
    }
    return times;
  }

  // A start that failed for nobody's fault: every one is retryable, and what counts is where it failed.
  bool MayStartAgain(const DurableStep& step, bool restarted) const {
    const bool by_policy = limits_.fault_tolerant_policy != FaultTolerantPolicy::kNever;
    // Failed workers and quick failures are counted too; where these limits are set, both answers may be right.
    const bool is_free = limits_.max_tolerated_failure_rate < 0 && limits_.no_progress_limit == 0;
    if (!is_free) return restarted;
    const bool of_one = step.job.reason_message.starts_with("it was not started") ||
                        step.job.reason_message.starts_with("no node was ready for it");
    const bool within = TimesNotStarted(step.job) <= limits_.max_num_of_same_error;
    return by_policy && within && ((!restarted && of_one) || RestartsAreLeft());
  }

  // No policy is asked. Hangs right after the start are counted too; where that is limited, both answers may be right.
  bool MayRestartHanging(bool restarted) const {
    return RestartsAreLeft() && (limits_.no_progress_limit == 0 || restarted);
  }

  bool RestartsAreLeft() const { return limits_.enable_job_restart && restarts_ < limits_.max_num_of_job_restart; }

  static bool IsWorker(const InstanceState& instance) {
    return instance.role == Role::kWorker || instance.role == Role::kMaster || instance.role == Role::kChief;
  }

  void AddFailedWorker(const JobState& job, InstanceIndex instance) {
    if (IsWorker(job.instances[Value(instance)])) failed_workers_.insert(instance);
  }

  bool WithinRate(const JobState& job) const {
    if (limits_.max_tolerated_failure_rate < 0) return true;
    const auto workers = std::ranges::count_if(job.instances, IsWorker);
    const double allowed = limits_.max_tolerated_failure_rate * static_cast<double>(workers);
    return static_cast<double>(failed_workers_.size()) <= allowed + 1e-9;
  }

  const FaultToleranceParameters& limits_;
  uint32_t restarts_ = 0;
  size_t records_ = 0;
  Monotonic all_started_;
  std::optional<Round> round_;
  std::set<InstanceIndex> started_alone_;
  std::map<InstanceIndex, Monotonic> starts_;
  std::map<std::string, uint32_t> same_error_, quick_;
  std::set<InstanceIndex> failed_workers_;
};

}  // namespace

std::unique_ptr<Watcher> MakeRestartLimitChecker(World& world) { return std::make_unique<RestartLimit>(world); }

}  // namespace aimaster::sim
