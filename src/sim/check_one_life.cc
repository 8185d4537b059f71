// Never two live attempts of one rank: two processes that write the same checkpoint ruin it.
#include <map>

#include "sim/checkers.h"
#include "sim/world.h"

namespace aimaster::sim {
namespace {

class OneLife : public Watcher {
 public:
  explicit OneLife(World& world) : Watcher(world) {}
  std::string_view name() const override { return "one-life"; }

  void OnRankStarted(const RankLife& rank) override {
    const auto [other, is_first] = live_.emplace(rank.rank, &rank);
    if (is_first) return;
    Complain("rank " + std::to_string(rank.rank) + " begins on " + rank.node.name + " as attempt " +
             std::to_string(rank.key.attempt) + ", while its attempt " + std::to_string(other->second->key.attempt) +
             " lives on " + other->second->node.name);
  }
  void OnRankDied(const RankLife& rank) override {
    const auto found = live_.find(rank.rank);
    if (found != live_.end() && found->second == &rank) live_.erase(found);
  }

 private:
  std::map<uint32_t, const RankLife*> live_;
};

}  // namespace

std::unique_ptr<Watcher> MakeOneLifeChecker(World& world) { return std::make_unique<OneLife>(world); }

}  // namespace aimaster::sim
