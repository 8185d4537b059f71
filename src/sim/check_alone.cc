// In an Async job a worker's failure is its own: it alone is stopped and started again, each failure is decided about
// once, and none is forgotten. Whether that is decided rightly is the business of the limits (check_restart_limit.cc).
#include <map>
#include <set>
#include <utility>

#include "core/roles.h"
#include "sim/checkers.h"
#include "sim/world.h"

namespace aimaster::sim {
namespace {

class Alone : public Watcher {
 public:
  explicit Alone(World& world)
      : Watcher(world), is_async_(world.scenario.spec.fault_tolerance.execution_mode == ExecutionMode::kAsync) {}
  std::string_view name() const override { return "alone"; }

  void OnDurable(const DurableStep& step) override {
    if (!is_async_) return;
    for (const CountedExit& exit : step.counted) {
      const Life life{exit.instance, exit.attempt};
      if (!exit.succeeded && !decided_.contains(life)) failed_.insert(life);
    }
    LookAtJudgement(step);
    for (; records_ < step.job.records.size(); ++records_) LookAtRecord(step.job, step.job.records[records_]);
    if (IsUp(step.job.phase)) {
      LookAtStops(step);
    } else {
      failed_.clear();  // what the job as a whole does is nobody's own
    }
    for (const Action& action : step.result.actions) {
      if (const auto* start = std::get_if<StartInstance>(&action)) attempts_[start->instance] = start->attempt;
    }
    if (step.job.phase != Phase::kRunning) return;
    for (const Life& life : failed_) {
      if (decided_.contains(life)) continue;
      return Complain("the failure of " + NameOf(step.job, life.first) + ", attempt " +
                      std::to_string(Value(life.second)) + ", is forgotten");
    }
  }

 private:
  using Life = std::pair<InstanceIndex, Attempt>;

  static bool IsUp(Phase phase) {
    return phase == Phase::kRunning || phase == Phase::kCollecting || phase == Phase::kJudging;
  }
  static const std::string& NameOf(const JobState& job, InstanceIndex index) {
    return job.instances[Value(index)].name;
  }

  void LookAtJudgement(const DurableStep& step) {
    const auto* judged = std::get_if<FailureJudged>(&step.input.event);
    if (judged == nullptr || judged->apart || step.result.decisions.empty()) return;
    const auto comes_back_alone = [&job = step.job](InstanceIndex index) {
      return RestartsAlone(job.spec, job.instances[Value(index)].role);
    };
    if (!comes_back_alone(judged->judgement.root_instance)) return;
    for (const Life& life : failed_) {
      if (!comes_back_alone(life.first)) return;
    }
    Complain("the whole job is decided about, and " + NameOf(step.job, judged->judgement.root_instance) +
             " could have been restarted alone");
  }

  void LookAtRecord(const JobState& job, const RestartRecord& record) {
    if (record.scope != RestartScope::kInstance) return;
    const InstanceIndex index = record.judgement.root_instance;
    const Life life{index, attempts_[index]};
    if (!RestartsAlone(job.spec, job.instances[Value(index)].role)) {
      return Complain(NameOf(job, index) + " is restarted alone, and can't be");
    }
    // That it never started, or waits for its node again, is no exit.
    const bool is_exit = record.judgement.fault != "StartTimeout" && record.judgement.fault != "NodeTimeout";
    if (is_exit && !decided_.insert(life).second) {
      return Complain("the failure of " + NameOf(job, index) + ", attempt " + std::to_string(Value(life.second)) +
                      ", is decided about twice");
    }
    decided_.insert(life);
  }

  void LookAtStops(const DurableStep& step) {
    for (const Action& action : step.result.actions) {
      const auto* stop = std::get_if<StopInstance>(&action);
      if (stop == nullptr || decided_.contains({stop->instance, stop->attempt})) continue;
      Complain(NameOf(step.job, stop->instance) + " is stopped, and has not failed");
    }
  }

  const bool is_async_;
  size_t records_ = 0;
  std::map<InstanceIndex, Attempt> attempts_;
  std::set<Life> failed_, decided_;
};

}  // namespace

std::unique_ptr<Watcher> MakeAloneChecker(World& world) { return std::make_unique<Alone>(world); }

}  // namespace aimaster::sim
