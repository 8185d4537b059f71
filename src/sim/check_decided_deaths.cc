// Training goes on whatever of ours dies: a rank that did not end by itself died with its shim or its node, or by an
// order that a master decided, or because the job is over, or because there was no master for --orphan-timeout.
#include <algorithm>

#include "sim/checkers.h"
#include "sim/world.h"

namespace aimaster::sim {
namespace {

class DecidedDeaths : public Watcher {
 public:
  explicit DecidedDeaths(World& world) : Watcher(world) {}
  std::string_view name() const override { return "decided-deaths"; }

  void OnRankDied(const RankLife& rank) override {
    const History& history = world_.history;
    const Duration alone = world_.queue.now() - rank.node.last_led;
    bool is_decided = true;
    switch (rank.death) {
      case Death::kItsOwn:
      case Death::kShimDied:
      case Death::kNodeDied:
      case Death::kSwept:  // what a dead shim left; what the agent sweeps has no shim
        is_decided = rank.death != Death::kSwept || rank.node.FindShim(rank.shim) == nullptr;
        break;
      case Death::kOrder:
        is_decided =
            history.has_stopped(InstanceIndex{rank.key.instance}, Attempt{rank.key.attempt}) || world_.stop_was_asked();
        break;
      case Death::kJobOver:
        is_decided = history.has_finished() || IsLost(rank.node.index);
        break;
      case Death::kOrphaned:
        is_decided = std::max(alone, rank.was_alone_for) >= Duration(world_.scenario.spec.timing.orphan_timeout);
        break;
    }
    if (is_decided) return;
    Complain("rank " + std::to_string(rank.rank) + ", attempt " + std::to_string(rank.key.attempt) + ", is ended " +
             std::string(Name(rank.death)) + ", and nobody decided that; its node had a master " +
             FormatDuration(alone) + " ago");
  }

 private:
  bool IsLost(NodeIndex node) const {
    const auto found = world_.history.job().nodes.find(node);
    return found != world_.history.job().nodes.end() && found->second.lost;
  }
};

}  // namespace

std::unique_ptr<Watcher> MakeDecidedDeathsChecker(World& world) { return std::make_unique<DecidedDeaths>(world); }

}  // namespace aimaster::sim
