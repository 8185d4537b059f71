// A job that is said to have succeeded has: the last life of each rank that counts ended with 0, and all of them in one
// round, unless the framework keeps what is done over rounds.
#include <optional>

#include "core/roles.h"
#include "sim/checkers.h"
#include "sim/world.h"

namespace aimaster::sim {
namespace {

class Success : public Watcher {
 public:
  explicit Success(World& world) : Watcher(world) {}
  std::string_view name() const override { return "success"; }

  void OnDurable(const DurableStep& step) override {
    if (step.job.status != JobStatus::kSucceeded || said_) return;
    said_ = true;
    std::optional<uint32_t> round;
    for (size_t rank = 0; rank < step.job.instance_of_rank.size(); ++rank) {
      const InstanceIndex index = step.job.instance_of_rank[rank];
      const InstanceState& instance = step.job.instances[Value(index)];
      if (!CountsForSuccess(step.job.spec, instance.role, instance.index_in_role)) continue;
      RankLife* last =
          world_.FindRank({Value(index), Value(step.job.instances[Value(index)].attempt)}, static_cast<uint32_t>(rank));
      const std::string who = "rank " + std::to_string(rank);
      if (last == nullptr) return Complain("the job succeeded, and " + who + " never ran in its last attempt");
      if (last->is_alive) return Complain("the job succeeded, and " + who + " still runs");
      if (last->code != 0) return Complain("the job succeeded, and " + who + " ended with something else than 0");
      const uint32_t its_round = last->node.disk.attempts[last->key].round;
      const bool one_round = !KeepsResults(step.job.spec);
      if (one_round && round.value_or(its_round) != its_round) return Complain("the job succeeded over two rounds");
      round = its_round;
    }
  }

 private:
  bool said_ = false;
};

}  // namespace

std::unique_ptr<Watcher> MakeSuccessChecker(World& world) { return std::make_unique<Success>(world); }

}  // namespace aimaster::sim
