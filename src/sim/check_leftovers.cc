// Nothing lives on after the job's end: no rank does when it is said to have ended, unless it can't be killed and that
// is the reason; and when everything had its time to go, no rank holds a device, and nobody of ours waits for anything.
#include <utility>

#include "sim/checkers.h"
#include "sim/world.h"

namespace aimaster::sim {
namespace {

class Leftovers : public Watcher {
 public:
  explicit Leftovers(World& world) : Watcher(world) {}
  std::string_view name() const override { return "leftovers"; }

  void OnDurable(const DurableStep& step) override {
    if (step.job.phase != Phase::kEnded || std::exchange(said_, true) || step.job.reason_code == "Unkillable") return;
    for (const auto& [index, node] : world_.nodes) {
      if (node->ranks.empty()) continue;
      const RankLife& rank = *node->ranks.front();
      return Complain("the job has ended (" + step.job.reason_code + "), and rank " + std::to_string(rank.rank) +
                      ", attempt " + std::to_string(rank.key.attempt) + ", lives on " + node->name);
    }
  }

  void OnNothingMoreToDo() override {
    for (const auto& [index, node] : world_.nodes) {
      for (const RankLife* rank : node->ranks) {
        if (rank->is_stuck()) continue;  // nobody can end it
        return Complain("rank " + std::to_string(rank->rank) + ", attempt " + std::to_string(rank->key.attempt) +
                        ", still lives on " + node->name);
      }
      if (!node->shims.empty()) return Complain("a shim still lives on " + node->name);
      if (node->agent != nullptr) return Complain("the agent still lives on " + node->name);
    }
    if (world_.AnyMasterLives()) Complain("a master still lives");
  }

 private:
  bool said_ = false;
};

}  // namespace

std::unique_ptr<Watcher> MakeLeftoversChecker(World& world) { return std::make_unique<Leftovers>(world); }

}  // namespace aimaster::sim
