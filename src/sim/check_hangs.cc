// A hang is found, and in time; and none is found where somebody has printed within the interval. What ranks print, and
// when, is the world's truth; that a finding waits while nodes are not heard is the product's affair, so how long it
// takes is looked at only in worlds where nothing goes wrong.
#include <algorithm>

#include "core/roles.h"
#include "sim/checkers.h"
#include "sim/world.h"

namespace aimaster::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFoundWithin = 1s;  // of the interval
constexpr Duration kNeverAfter = 60s;  // with the slowest disk there is

class Hangs : public Watcher {
 public:
  explicit Hangs(World& world) : Watcher(world), parameters_(world.scenario.spec.fault_tolerance) {}
  std::string_view name() const override { return "hangs"; }

  void OnRankStarted(const RankLife& rank) override { SignOfLife(rank); }
  void OnRankPrinted(const RankLife& rank) override { SignOfLife(rank); }
  void OnRankDied(const RankLife& rank) override {
    last_death_ = world_.queue.now();
    if (rank.death == Death::kItsOwn && rank.code == 0 && Counts(rank.rank)) Raise(first_success_);
  }

  void OnDurable(const DurableStep& step) override {
    for (const Action& action : step.result.actions) {
      if (std::holds_alternative<StartInstance>(action)) first_success_.reset();
    }
    const auto* found = std::get_if<HangFound>(&step.input.event);
    if (found == nullptr) return;
    if (IsAsync(step.job)) return Complain("a hang was looked for in an Async job");
    const std::optional<Duration> at = WorldTime(step.input.at.monotonic);
    if (!at) return;
    if (found->kind == HangKind::kSilence) {
      Silence(*at);
    } else {
      Exit(*at);
    }
  }

 private:
  void Silence(Duration at) {
    if (!parameters_.enable_job_hang_detection) return Complain("silence was looked for, and nobody asked for it");
    const auto after = std::ranges::upper_bound(signs_, at);
    if (after == signs_.begin()) return Complain("silence was found before any rank began");
    const Duration silent = at - *std::prev(after);
    if (silent < parameters_.job_hang_interval) {
      Complain("a hang was found when a rank had printed " + FormatDuration(silent) + " before; the interval is " +
               FormatDuration(parameters_.job_hang_interval));
    }
    // Who has ended has lived until then; a finding need not know it yet.
    const Duration still = std::min(silent, at - last_death_.value_or(Duration::zero()));
    if (IsQuiet() && still > parameters_.job_hang_interval + kFoundWithin + Slack()) {
      Complain("a hang was found only after " + FormatDuration(still) + "; the interval is " +
               FormatDuration(parameters_.job_hang_interval));
    }
  }

  void Exit(Duration at) {
    if (!parameters_.enable_job_exit_hang_detection) return Complain("exits were looked at, and nobody asked for it");
    if (!first_success_ || at - *first_success_ < parameters_.job_exit_hang_interval) {
      Complain("an exit hang was found before the interval was over");
    }
  }

  // And long after it, if nothing else happened, it has to have been found.
  void SignOfLife(const RankLife& rank) {
    const InstanceState& instance = world_.history.job().instances[rank.key.instance];
    if (!instance.live || Value(instance.attempt) != rank.key.attempt) return;  // given up; it may live on for a while
    signs_.push_back(world_.queue.now());
    if (!IsQuiet() || !parameters_.enable_job_hang_detection || IsAsync(world_.history.job())) return;
    const Duration at = signs_.back();
    world_.queue.After(parameters_.job_hang_interval + kFoundWithin + kNeverAfter, [this, at] {
      const JobState& job = world_.history.job();
      if (signs_.back() != at || last_death_ > at || job.phase != Phase::kRunning ||
          job.tallies.started != job.instances.size())
        return;
      if (job.tallies.work_done == CountingInstances(job.spec)) return;
      Complain("all ranks have been silent for " + FormatDuration(world_.queue.now() - at) + ", and no hang is found");
    });
  }

  bool IsQuiet() const { return world_.scenario.fault_count == 0; }
  // A question and its answer, with what a commit may be in the way.
  Duration Slack() const { return 4 * world_.scenario.network_delay + 2 * world_.scenario.commit_delay; }

  bool Counts(uint32_t rank) const {
    const JobState& job = world_.history.job();
    const InstanceState& instance = job.instances[Value(job.instance_of_rank[rank])];
    return CountsForSuccess(job.spec, instance.role, instance.index_in_role);
  }
  void Raise(std::optional<Duration>& first) const {
    first = std::min(first.value_or(world_.queue.now()), world_.queue.now());
  }

  // None once the master's machine was started again, since its clock is another one then.
  std::optional<Duration> WorldTime(Monotonic at) const {
    if (world_.master_machine.boot() > 1) return std::nullopt;
    return at.since_origin - (world_.master_machine.Now().monotonic.since_origin - world_.queue.now());
  }

  const FaultToleranceParameters& parameters_;
  std::vector<Duration> signs_;  // of life, of any rank
  std::optional<Duration> first_success_, last_death_;
};

}  // namespace

std::unique_ptr<Watcher> MakeHangsChecker(World& world) { return std::make_unique<Hangs>(world); }

}  // namespace aimaster::sim
