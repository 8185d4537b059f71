// Inputs: everything that can make the engine decide. Each is a fact that was made durable before the engine saw it,
// so the list of inputs is the whole history of a job: replaying it gives the same decisions again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/failure.h"
#include "core/ids.h"
#include "core/job_spec.h"
#include "core/time.h"

namespace aimaster {

struct JobSubmitted {  // the first input of every journal, and only the first
  JobSpec spec;
  bool operator==(const JobSubmitted&) const = default;
};
struct MasterStarted {  // a master took the job over: the first one, or one after a crash
  Epoch epoch{};
  std::string engine_change = {};  // what its engine would have decided otherwise than was decided, or empty
  bool operator==(const MasterStarted&) const = default;
};
struct NodeJoined {  // a node's agent is connected for the first time
  NodeIndex node{};
  std::string name;
  std::string address;  // what other nodes reach it by
  bool operator==(const NodeJoined&) const = default;
};
struct NodeDenied {  // the provider has no other node to give
  std::string reason;
  bool operator==(const NodeDenied&) const = default;
};
struct NodeLost {  // a node is gone, with all that ran on it
  NodeIndex node{};
  std::string reason;
  bool operator==(const NodeLost&) const = default;
};
struct PortReserved {  // a node's agent holds as many ports for the round as it was asked for
  uint32_t reservation = 0;
  uint16_t port = 0;  // the first of them
  NodeIndex node{};
  std::vector<uint16_t> ports = {};  // all of them; empty where an older version wrote it, and one was asked for
  bool operator==(const PortReserved&) const = default;
};
struct PortRefused {
  uint32_t reservation = 0;
  std::string reason;
  NodeIndex node{};
  bool operator==(const PortRefused&) const = default;
};
struct InstanceStarted {  // all its ranks' programs were executed
  InstanceIndex instance{};
  Attempt attempt{};
  bool operator==(const InstanceStarted&) const = default;
};
struct InstanceReady {  // every one of its ranks has printed, called the SDK, or entered a collective
  InstanceIndex instance{};
  Attempt attempt{};
  bool operator==(const InstanceReady&) const = default;
};
struct RankSucceeded {
  InstanceIndex instance{};
  Attempt attempt{};
  Rank rank{};
  bool operator==(const RankSucceeded&) const = default;
};
struct RankFailed {
  RankFailure failure;
  bool operator==(const RankFailed&) const = default;
};
struct InstanceEnded {  // its shim is done: no process of this attempt exists any more
  InstanceIndex instance{};
  Attempt attempt{};
  bool operator==(const InstanceEnded&) const = default;
};
struct EvidenceCollected {  // a node answered: all exits up to now are reported
  uint32_t collection = 0;
  NodeIndex node{};
  std::vector<Rank> dumping_core;  // ranks that are just writing a core file
  bool operator==(const EvidenceCollected&) const = default;
};
// The finding of the detector: one judgement over all that failed; or, with `apart`, one for each failed instance, of
// which `others` has all but the first.
struct FailureJudged {
  uint32_t judgement_number = 0;
  Judgement judgement;
  bool apart = false;
  std::vector<Judgement> others = {};
  bool operator==(const FailureJudged&) const = default;
};
struct StopRequested {
  bool at_once = false;  // without grace
  std::string by;        // "Ctrl-C", "aimaster stop"
  bool operator==(const StopRequested&) const = default;
};
struct RetryableErrorsAdded {  // by the job's own code: texts that make a failure retryable, from now on
  std::vector<std::string> texts;
  bool operator==(const RetryableErrorsAdded&) const = default;
};
struct StacksRequested {  // by a person; one who asks while stacks are being taken gets those
  std::string by;         // "aimaster stacks"
  bool operator==(const StacksRequested&) const = default;
};
// Of all nodes that answered in time, and stored; the stacks themselves are no business of ours.
struct StacksCaptured {
  uint32_t capture = 0;
  uint32_t ranks_asked = 0;
  uint32_t ranks_answered = 0;
  std::string path;                 // within the job's directory; empty: they could not be stored
  std::string summary;              // one line: who is where nobody else is, or why there is nothing
  std::vector<Rank> culprits = {};  // the ranks whose stack is the rarest; empty: none stands out
  std::string where = {};           // its innermost frame that says something: "load (data.py:12)"
  bool operator==(const StacksCaptured&) const = default;
};
// The finding of a detector: the job hangs. What follows is the engine's affair.
enum class HangKind {
  kSilence,        // nobody has printed for the interval
  kExit,           // a rank has ended well, and the job does not end
  kCommunication,  // an Error of CommunicationJudged, which comes right before it; no input tells of this by itself
};
struct HangFound {
  HangKind kind = HangKind::kSilence;
  Round round{};
  Duration lasts{};                      // since the last sign of life, or since the first rank ended
  Duration interval{};                   // that counted
  std::optional<NodeIndex> set_by = {};  // where a rank set the interval through the SDK; none: it is the flag's
  bool is_advancing = false;             // kSilence: the steps that ranks tell go on
  std::optional<Rank> quietest = {};     // kSilence: who has been silent for the longest
  Duration quietest_for{};
  bool operator==(const HangFound&) const = default;
};
// What is concluded from the communication of all ranks (c4d/verdict.h), as far as something follows from it.
struct CommunicationVerdict {
  std::string kind;  // "RankCommHang"
  C4dLogLevel level = C4dLogLevel::kInfo;
  std::vector<Rank> ranks;               // ascending, as the program numbers them: of an MPI program, those of MPI
  std::vector<InstanceIndex> instances;  // where each of them is; empty: that is not known of all
  std::vector<NodeIndex> nodes;          // of those, each once
  bool is_culprit = false;               // these ranks hang, and others wait for them
  bool suspects_node = false;            // and where they are may be why: a node, a device, a link
  std::string text;                      // "rank 3 hangs in the communication layer"
  Duration lasts{};
  std::vector<std::string> evidence;  // sentences
  bool operator==(const CommunicationVerdict&) const = default;
};
struct CommunicationJudged {  // another finding than the last one
  Round round{};
  std::vector<CommunicationVerdict> verdicts;  // all that hold now, the worst first; empty: what held is over
  bool operator==(const CommunicationJudged&) const = default;
};
struct CustomMessageSent {  // by the job's own code, for people
  InstanceIndex instance{};
  std::optional<Rank> rank;  // none: one of the instance's
  std::string content;       // at most kErrorTextMaxBytes
  bool operator==(const CustomMessageSent&) const = default;
};
struct CheckpointTold {  // by the job's own code
  Round round{};
  uint64_t step = 0;
  Wall time;  // by the master's clock
  bool operator==(const CheckpointTold&) const = default;
};
struct Tick {  // the time of Engine::NextDeadline() has come
  bool operator==(const Tick&) const = default;
};

using Event = std::variant<JobSubmitted, MasterStarted, NodeJoined, NodeDenied, NodeLost, PortReserved, PortRefused,
                           InstanceStarted, InstanceReady, RankSucceeded, RankFailed, InstanceEnded, EvidenceCollected,
                           FailureJudged, StopRequested, RetryableErrorsAdded, StacksRequested, StacksCaptured,
                           HangFound, CommunicationJudged, CustomMessageSent, CheckpointTold, Tick>;

struct Input {
  Moment at;
  Event event;
  bool operator==(const Input&) const = default;
};

}  // namespace aimaster
