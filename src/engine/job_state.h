// JobState: what the engine knows about a job, as plain data. The journal's readable tables, `aimaster get` and the
// page are views of it; only the engine changes it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/failure.h"
#include "core/ids.h"
#include "core/job_spec.h"
#include "core/status.h"
#include "core/time.h"
#include "engine/input.h"
#include "engine/tallies.h"

namespace aimaster {

// Where an instance of an Async job is on its way from a failure to its next attempt.
enum class Renewal {
  kNone,      // not on it
  kFailed,    // a rank of it has failed, and the decision is yet to come
  kStopping,  // what is left of it is being stopped
  kPausing,   // it has ended, and is not started before its time (backoff.h)
  kWaiting,   // it has ended, and waits for a node to start on
};
std::string_view Name(Renewal renewal);  // "stopping"

// What an Async job keeps of each instance, whose life is its own there.
struct OwnLife {
  Renewal renewal = Renewal::kNone;
  bool started_alone = false;         // this attempt, and not with the whole job
  uint32_t restarts = 0;              // alone, over the job's life
  Monotonic start;                    // of this attempt: when it was ordered
  std::optional<Monotonic> deadline;  // of its stop, its pause, its wait for a node, or its first word
  Monotonic stop_began;
  bool stop_at_once = false;
  std::optional<uint32_t> open_record;       // index of the record of its restart, until it is ready
  std::optional<uint32_t> first_local_rank;  // where it came to a node on which others run already: behind them
  uint32_t quick_failures = 0;               // in a row
  std::optional<Monotonic> not_before;       // its next attempt does not start earlier
  bool operator==(const OwnLife&) const = default;
};

struct InstanceState {
  std::string name;
  Role role = Role::kWorker;
  uint32_t index_in_role = 0;
  Rank first_rank{};
  uint32_t ranks = 1;
  NodeIndex node{};
  InstanceStatus status = InstanceStatus::kPending;
  Attempt attempt{};  // the current or last one; 0 before the first start
  uint32_t starts = 0;
  bool live = false;     // told to start, and not known to have ended: processes of this attempt may exist
  bool started = false;  // InstanceStarted seen in this attempt
  bool ready = false;
  uint32_t ranks_succeeded = 0;
  uint32_t ranks_failed = 0;     // by their own fault, not by our signal
  std::optional<int> exit_code;  // of its first failed rank; 0 when it succeeded
  std::optional<int> signal;
  std::optional<OwnLife> own;  // in an Async job that has started
  // Where it listens in this round, if it has an address of its own (HasAddress); port 0: not reserved yet.
  std::string address;
  uint16_t port = 0;
  bool operator==(const InstanceState&) const = default;
};
inline Renewal RenewalOf(const InstanceState& instance) {
  return instance.own ? instance.own->renewal : Renewal::kNone;
}

struct NodeState {
  std::string name;
  std::string address;
  bool joined = false;
  bool lost = false;
  bool isolated = false;
  std::string isolation_reason;
  bool operator==(const NodeState&) const = default;
};

enum class Stage { kDetect, kCollect, kDecide, kStop, kWait, kIsolate, kAcquire, kStart, kReady };
std::string_view Name(Stage stage);  // "detect"

struct StageTime {
  Stage stage{};
  Moment start;
  std::optional<Duration> duration;  // none while it lasts
  bool operator==(const StageTime&) const = default;
};

// What the training has saved.
struct Checkpoint {
  uint64_t step = 0;
  Wall at;  // by the master's clock
  bool operator==(const Checkpoint&) const = default;
};

enum class RoundResult { kRunning, kSucceeded, kFailed, kStopped };
std::string_view Name(RoundResult result);  // "Running"

// One life of the whole job. Its stages are those that brought it up (for round 0 acquire, start, ready; for a later
// one from `detect` of the failure that ended the round before), and, in the last round, those that ended the job.
struct RoundState {
  Round round{};
  Moment start;
  std::optional<Wall> end;
  RoundResult result = RoundResult::kRunning;
  std::string reason;  // why it ended, one line
  std::vector<StageTime> stages;
  std::optional<Checkpoint> checkpoint = {};  // the last that it told
  bool operator==(const RoundState&) const = default;
};

enum class RestartScope { kJob, kInstance };
enum class RestartResult { kRestarting, kRestarted, kFailed, kStopped };
std::string_view Name(RestartResult result);  // "Restarted"

struct RestartRecord {
  uint32_t restarts = 0;  // 1 for the first restart of the job, or, of scope kInstance, of the instance alone
  RestartScope scope = RestartScope::kJob;
  Moment restart_time;  // when it was decided
  Moment began;         // when the failure happened: the duration counts from here
  Round round{};        // the round that failed
  std::string reason;   // one line
  RestartResult result = RestartResult::kRestarting;
  std::optional<Duration> duration;  // from the failure until the new round, or the instance, was ready
  Judgement judgement;
  bool isolated_node = false;
  std::string node_name;
  std::string instance_name;
  bool operator==(const RestartRecord&) const = default;
};

// What the engine concluded, and why. `reasons` is the chain in order; the last line is the one that people are sent.
struct Decision {
  Moment at;
  Round round{};
  std::string kind;     // "Restart", "RestartInstance", "Fail", "Succeed", "Stop", "RetryStart", "Unkillable", …
  std::string summary;  // one line
  std::vector<std::string> reasons;
  bool operator==(const Decision&) const = default;
};

// Where the job is in its life. The table in engine.cc says what each input does in each phase.
enum class Phase {
  kNew,         // nothing submitted yet
  kAcquiring,   // waits for nodes
  kReserving,   // waits for the ports of the round
  kRunning,     // instances are starting or running; in an Async job some may be restarted alone (Renewal)
  kCollecting,  // something failed; what else?
  kJudging,     // the detector is asked
  kStopping,    // all instances are being stopped, for a restart, a start again, or the end
  kEnded,
};

enum class StopPurpose { kRestart, kRetryStart, kFail, kUserStop, kSucceed };

// When the engine wants to be called again, by purpose.
struct Deadlines {
  std::optional<Monotonic> collect;      // the collect window closes, unless somebody is still being waited for
  std::optional<Monotonic> collect_cap;  // it closes, whoever is being waited for
  std::optional<Monotonic> start;        // all instances should have started and printed something
  std::optional<Monotonic> stop;         // all instances should be gone
  std::optional<Monotonic> wait;         // all are gone, and the next round is not started earlier
  bool operator==(const Deadlines&) const = default;
};

// At which step the same root cause came last, and how often in a row.
struct SameStep {
  uint64_t step = 0;
  uint32_t times = 0;
  bool operator==(const SameStep&) const = default;
};

// The stacks of the job's ranks: the capture that was ordered last.
struct StackCapture {
  uint32_t number = 0;  // 0: none was ever ordered
  bool is_under_way = false;
  std::string reason;                 // why it was ordered
  std::optional<Monotonic> deadline;  // it is waited for until then
  std::string path;                   // of the last one that was stored, within the job's directory
  bool operator==(const StackCapture&) const = default;
};

// The job as a whole: what changes with nearly every input, and is small.
struct JobProgress {
  Epoch epoch{};
  JobStatus status = JobStatus::kCreating;
  Phase phase = Phase::kNew;
  StopPurpose stop_purpose = StopPurpose::kFail;
  bool stop_at_once = false;
  std::string late_stop_by;  // who wanted a stop while it was stopped because it had succeeded
  Round round{};
  uint32_t restarts = 0;       // of the whole job
  uint32_t free_restarts = 0;  // of them, not counted against max_num_of_job_restart: pre-emptions
  uint32_t start_retries = 0;  // starts again in place within this round
  std::string reason_code;
  std::string reason_message;
  int exit_code = 0;  // what `aimaster run` exits with, once ended
  Moment submit_time;
  std::optional<Wall> running_time;
  std::optional<Wall> end_time;

  std::string master_address;
  uint16_t master_port = 0;
  uint32_t reservation = 0;
  uint32_t port_refusals = 0;  // since this start began
  uint32_t collection = 0;
  uint32_t judgement_number = 0;
  std::set<NodeIndex> collecting_from;             // nodes that have not answered yet
  std::set<Rank> dumping_core;                     // ranks whose core is being written
  uint32_t failures_dropped = 0;                   // ranks that failed and are only counted
  std::map<std::string, uint32_t> same_error;      // "<instance>|<code>" → times it was a root cause
  std::map<std::string, uint32_t> quick_failures;  // same, but within the first minute of a round
  std::map<std::string, SameStep> same_step;       // same, at the same step of the training
  std::set<InstanceIndex> failed_workers;          // failed by their own fault, over the job's life
  uint32_t outside_failures = 0;                   // quick ones in a row for which the world outside is to blame
  std::vector<std::string> retryable_texts;        // the job's own, in the order in which they came

  StackCapture stacks;

  std::optional<Monotonic> ranks_started;  // when the starts of this round were ordered
  std::optional<Monotonic> not_before;     // the next round does not start earlier

  std::optional<Monotonic> first_success;  // of this round: a rank that counts for the job's success has ended with 0
  std::optional<HangFound> hang;           // while its call stacks are being taken
  std::vector<CommunicationVerdict> communication;  // that hold in this round
  std::optional<Monotonic> told_advancing;          // when people were told that the job is silent but advancing

  std::vector<StageTime>
      pending_stages;    // of a failure that is not decided yet: which round they belong to is not known
  Moment failure_began;  // when the first rank of the failure being handled ended
  Monotonic stop_began;
  uint32_t stop_escalations = 0;
  Deadlines deadlines;
  bool operator==(const JobProgress&) const = default;
};

struct JobState : JobProgress {
  JobSpec spec;
  std::vector<InstanceState> instances;  // by InstanceIndex
  std::vector<InstanceIndex> instance_of_rank;
  std::vector<bool> rank_ended;  // by Rank, in its instance's current attempt
  std::map<NodeIndex, NodeState> nodes;
  // Slot → node; instances are spread over slots, a slot outlives its node. An instance that runs on while its slot has
  // moved follows when it is started again.
  std::vector<NodeIndex> placement;
  std::vector<RankFailure> failures;  // of the failure being handled, bounded by kFailuresMax (failures.h)
  std::vector<RoundState> rounds;
  std::vector<RestartRecord> records;

  // What follows from the rest, and is not stored.
  Tallies tallies;
  uint32_t slots_filled = 0;  // the first so many slots have a usable node, while nodes are acquired
};

inline constexpr size_t kFailuresMax = 16'384;

inline bool IsAsync(const JobState& job) { return job.spec.fault_tolerance.execution_mode == ExecutionMode::kAsync; }

}  // namespace aimaster
