// Engine: the one place that decides. Facts and the time go in, actions come out.
//
// Think of a chess clock with a rule book: it never looks out of the window. Letting the engine read clocks or sockets
// was rejected: then a decision could not be derived again from the journal, neither after a crash, nor for `explain`,
// nor in a simulation of a hundred thousand instances.
#pragma once

#include <optional>
#include <vector>

#include "engine/action.h"
#include "engine/input.h"
#include "engine/job_state.h"

namespace aimaster {

// Raised whenever the same inputs may lead to another decision than before. A journal tells which engine decided.
inline constexpr uint32_t kEngineVersion = 7;

// What people are told: a row of `aimaster events`, later a CloudEvent.
struct JobEvent {
  Moment at;
  std::string type;     // "aimaster.round.started"
  std::string subject;  // an instance or node name, or empty: the job
  std::string message;  // one line
  bool operator==(const JobEvent&) const = default;
};

// What one step changed, so that views write only that.
struct StepResult {
  std::vector<Action> actions;
  std::vector<Decision> decisions;
  std::vector<JobEvent> events;
  std::vector<InstanceIndex> changed_instances;  // each once, ascending
  std::vector<size_t> changed_rounds;            // indices into JobState::rounds
  std::vector<size_t> changed_records;           // indices into JobState::records
  std::vector<size_t> changed_failures;          // indices into JobState::failures
  bool operator==(const StepResult&) const = default;
};

// Deterministic: the same inputs give the same results, always. No I/O, no clock, no lock, no thread; may be moved
// between threads, not shared. An input that says what is already known, or that is about a former attempt, changes
// nothing: agents may repeat themselves.
class Engine {
 public:
  Engine() = default;
  // Goes on from a state that was stored.
  explicit Engine(JobState job);

  StepResult Step(const Input& input);

  // The event as it should be stored and stepped: of a storm of failures, what has to be kept of each.
  Event Fit(Event event) const;

  // When Step must be called with a Tick if nothing else happens before.
  std::optional<Monotonic> NextDeadline() const;

  // Every action whose answer has not come yet: what a master that took over issues again. With a node: those that are
  // for its agent, of which a new connection has to be told.
  std::vector<Action> Outstanding(std::optional<NodeIndex> only_node = std::nullopt) const;

  const JobState& job() const { return job_; }

 private:
  JobState job_;
};

}  // namespace aimaster
