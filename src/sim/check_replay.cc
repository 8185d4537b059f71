// Every decision can be derived again: the journal's inputs, through a new engine, give the decisions that were written
// beside them. That the same seed gives the same bytes is looked at where seeds are run (main.cc).
#include "journal/codec.h"
#include "sim/checkers.h"
#include "sim/world.h"

namespace aimaster::sim {
namespace {

class Replay : public Watcher {
 public:
  explicit Replay(World& world) : Watcher(world) {}
  std::string_view name() const override { return "replay"; }

  void OnJournalClosed() override {
    Engine engine;
    size_t number = 0;
    for (const auto& entry : world_.journal.entries()) {
      ++number;
      const StepResult result = engine.Step(entry->decoded);
      std::vector<std::string> decisions;
      for (const Decision& decision : result.decisions) decisions.push_back(Encode(decision));
      if (decisions == entry->decisions) continue;
      return Complain("input " + std::to_string(number) + " (" + std::string(EventKind(entry->decoded.event)) +
                      ") leads to another decision than was written");
    }
  }
};

}  // namespace

std::unique_ptr<Watcher> MakeReplayChecker(World& world) { return std::make_unique<Replay>(world); }

}  // namespace aimaster::sim
