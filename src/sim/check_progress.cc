// Nothing is ever stuck. That the job comes to its end, or to its ranks, in time is looked at by the world, which alone
// knows when the last fault was. This adds that nothing is waited for in vain once nothing goes wrong any more: a start
// that times out then has been forgotten, and a job that gives up then on processes that do not exist was never told.
#include <algorithm>

#include "sim/checkers.h"
#include "sim/world.h"

namespace aimaster::sim {
namespace {

using namespace std::chrono_literals;

// For what was under way to be told again, and for a lost machine to be known as lost.
constexpr Duration kCalm = 60s;

class Progress : public Watcher {
 public:
  explicit Progress(World& world) : Watcher(world) {}
  std::string_view name() const override { return "progress"; }

  void OnDurable(const DurableStep& step) override {
    if (!world_.faults_are_over || world_.queue.now() < world_.faults_ceased + kCalm) return;
    for (const Decision& decision : step.result.decisions) {
      if (decision.kind == "Unkillable" && !AnyRankLives()) {
        Complain("the job gives up on processes that can't be killed, and there are none");
      }
      if (decision.summary.find("within --start-timeout") == std::string::npos) continue;
      Complain("a start times out, " + FormatDuration(world_.queue.now() - world_.faults_ceased) +
               " after the last fault: " + decision.summary);
    }
  }

 private:
  bool AnyRankLives() const {
    return std::ranges::any_of(world_.nodes, [](const auto& entry) { return !entry.second->ranks.empty(); });
  }
};

}  // namespace

std::unique_ptr<Watcher> MakeProgressChecker(World& world) { return std::make_unique<Progress>(world); }

}  // namespace aimaster::sim
