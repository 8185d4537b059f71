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
  bool operator==(const StepResult&) const = default;
};

// Deterministic: the same inputs give the same results, always. No I/O, no clock, no lock, no thread; may be moved
// between threads, not shared. An input that says what is already known, or that is about a former attempt, changes
// nothing: agents may repeat themselves.
class Engine {
 public:
  StepResult Step(const Input& input);

  // When Step must be called with a Tick if nothing else happens before.
  std::optional<Monotonic> NextDeadline() const;

  // Every action whose answer has not come yet: what a master that took over issues again.
  std::vector<Action> Outstanding() const;

  const JobState& job() const { return job_; }

 private:
  JobState job_;
};

}  // namespace aimaster
