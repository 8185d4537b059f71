// No command of an older master is obeyed on a node that has seen a newer one, whichever of its agents has.
#include <map>

#include "sim/checkers.h"
#include "sim/world.h"

namespace aimaster::sim {
namespace {

class Fencing : public Watcher {
 public:
  explicit Fencing(World& world) : Watcher(world) {}
  std::string_view name() const override { return "fencing"; }

  void OnAccepted(NodeIndex node, Epoch epoch, bool command) override {
    Epoch& newest = newest_[node];
    if (epoch < newest) {
      Complain("node " + std::to_string(Value(node)) + (command ? " obeys" : " welcomes") + " the master of epoch " +
               std::to_string(Value(epoch)) + ", having seen epoch " + std::to_string(Value(newest)));
    }
    newest = std::max(newest, epoch);
  }

 private:
  std::map<NodeIndex, Epoch> newest_;
};

}  // namespace

std::unique_ptr<Watcher> MakeFencingChecker(World& world) { return std::make_unique<Fencing>(world); }

}  // namespace aimaster::sim
