// Watcher: what a simulated world shows to its checkers. They see the truth (processes, exits) and what was said
// (frames, the journal), and never what the product believes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "aimaster/v1/agent.pb.h"
#include "engine/engine.h"

namespace aimaster::sim {

class World;
struct RankLife;

// An exit that the durable history has taken into account: a rank that was not over, and now is.
struct CountedExit {
  InstanceIndex instance{};
  Attempt attempt{};
  Rank rank{};
  std::optional<RankExit> exit;  // none: lost
  bool succeeded = false;
  bool node_lost = false;
};

struct DurableStep {
  const Input& input;
  const StepResult& result;
  const JobState& job;  // after it
  const std::vector<CountedExit>& counted;
};

class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual std::string_view name() const = 0;

  virtual void OnRankStarted(const RankLife&) {}
  virtual void OnRankPrinted(const RankLife&) {}
  virtual void OnRankDied(const RankLife&) {}
  virtual void OnDurable(const DurableStep&) {}
  // A master hands a frame to its connection with an agent.
  virtual void OnFrameToAgent(uint64_t /*agent*/, const v1::ToAgent&) {}
  virtual void OnAsksProvider(const std::vector<NodeIndex>&) {}
  virtual void OnReport(uint64_t /*agent*/, const v1::Report&) {}
  // An agent has accepted a master of this epoch, by its Welcome or a command.
  virtual void OnAccepted(NodeIndex, Epoch, bool /*command*/) {}
  virtual void OnJournalClosed() {}    // the seed is over
  virtual void OnNothingMoreToDo() {}  // and everything had its time to go

 protected:
  explicit Watcher(World& world) : world_(world) {}
  void Complain(const std::string& what);
  World& world_;
};

}  // namespace aimaster::sim
