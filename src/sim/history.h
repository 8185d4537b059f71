// History: what is durable, as a reader of the journal sees it. It steps an engine of its own, input by input, so it
// knows what may be done by now. Looking into the master's engine was rejected: it runs ahead of the journal, and it is
// what is being tested.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "aimaster/v1/agent.pb.h"
#include "engine/engine.h"
#include "sim/watcher.h"

namespace aimaster::sim {

class History {
 public:
  // Steps the input and shows the step to the watchers.
  void Commit(const Input& input, const std::vector<Watcher*>& watchers);

  const JobState& job() const { return engine_.job(); }
  bool has_started(InstanceIndex instance, Attempt attempt) const { return starts_.contains({instance, attempt}); }
  bool has_stopped(InstanceIndex instance, Attempt attempt) const { return stops_.contains({instance, attempt}); }
  bool has_reserved(uint32_t reservation) const { return reservations_.contains(reservation); }
  bool has_collected(uint32_t collection) const { return collections_.contains(collection); }
  bool has_acquired(NodeIndex node) const { return acquired_.contains(node); }
  bool has_fact(const std::string& fact) const { return facts_.contains(fact); }
  bool has_finished() const { return engine_.job().phase == Phase::kEnded; }

 private:
  using AttemptOf = std::pair<InstanceIndex, Attempt>;
  std::vector<CountedExit> FindCounted(const std::vector<bool>& before, const Input& input) const;
  void Note(const Action& action);

  Engine engine_;
  std::set<AttemptOf> starts_, stops_;
  std::set<uint32_t> reservations_, collections_;
  std::set<NodeIndex> acquired_;
  std::set<std::string> facts_;
};

// The fact that a report tells, and that an input holds; empty: none that an agent could report. Two texts are the same
// when it is the same fact.
std::string FactOf(const v1::Report& report, NodeIndex from);
std::string FactOf(const Event& event);

}  // namespace aimaster::sim
