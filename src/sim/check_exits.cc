// Each exit is judged exactly once, and as it was: what the durable history counts is what the kernel said. A status
// that a dead shim never wrote may be unknown, one that it wrote may not.
#include <set>
#include <tuple>

#include "sim/checkers.h"
#include "sim/world.h"

namespace aimaster::sim {
namespace {

class Exits : public Watcher {
 public:
  explicit Exits(World& world) : Watcher(world) {}
  std::string_view name() const override { return "exits"; }

  void OnDurable(const DurableStep& step) override {
    for (const CountedExit& exit : step.counted) Count(exit);
    // In an Async job what was decided is no longer there: check_alone.cc.
    const bool is_sync = !IsAsync(step.job);
    if (is_sync && std::holds_alternative<FailureJudged>(step.input.event)) Judged(step.job);
  }

 private:
  using Id = std::tuple<uint32_t, uint32_t, uint32_t>;

  void Count(const CountedExit& exit) {
    const Id id{Value(exit.instance), Value(exit.attempt), Value(exit.rank)};
    const std::string who = "rank " + std::to_string(std::get<2>(id)) + ", attempt " + std::to_string(std::get<1>(id));
    if (!counted_.insert(id).second) return Complain("the exit of " + who + " is counted twice");
    const RankLife* rank = world_.FindRank({std::get<0>(id), std::get<1>(id)}, std::get<2>(id));
    if (rank == nullptr) {
      if (exit.exit || exit.succeeded) Complain(who + " is said to have ended, and never lived");
      return;
    }
    if (exit.node_lost) {
      if (rank->is_alive) Complain(who + " counts as lost with its node, and lives");
      return;
    }
    const AttemptDirectory& directory = rank->node.disk.attempts[rank->key];
    const auto& file = directory.ranks[rank->local].exit;
    if (rank->is_alive) return Complain(who + " is said to have ended, and lives");
    if (!exit.exit && !exit.succeeded) {
      if (file) Complain("how " + who + " ended is on its node's disk, and counts as not known");
      return;
    }
    const bool as_it_was = exit.succeeded ? rank->code == 0 && !rank->signal
                                          : exit.exit->code == rank->code && exit.exit->signal == rank->signal;
    if (!as_it_was) Complain(who + " counts as ended in another way than it did");
  }

  void Judged(const JobState& job) {
    for (const RankFailure& failure : job.failures) {
      const Id id{Value(failure.instance), Value(failure.attempt), Value(failure.rank)};
      const auto [found, is_new] = judged_.emplace(id, job.judgement_number);
      if (!is_new && found->second != job.judgement_number) {
        Complain("the failure of rank " + std::to_string(Value(failure.rank)) + ", attempt " +
                 std::to_string(Value(failure.attempt)) + ", is judged twice");
      }
    }
  }

  std::set<Id> counted_;
  std::map<Id, uint32_t> judged_;
};

}  // namespace

std::unique_ptr<Watcher> MakeExitsChecker(World& world) { return std::make_unique<Exits>(world); }

}  // namespace aimaster::sim
