// The vocabulary of failures: what an agent saw of a dead rank (RankExit, RankFailure), and what a detector concluded
// (Judgement). Facts and conclusions are separate types, so that a conclusion can always be derived again.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/time.h"

namespace aimaster {

inline constexpr size_t kErrorTextMaxBytes = 4096;         // one error text, wherever it is kept
inline constexpr size_t kMatchBytesPerRankMax = 16 << 10;  // of a rank's telling lines together, give or take one
inline constexpr size_t kMatchesPerRankMax = 32;           // telling lines kept per rank
inline constexpr size_t kRetryableTextsMax = 64;           // of a job's own, which make a failure retryable
inline constexpr size_t kRetryableTextMaxBytes = 256;      // each
inline constexpr size_t kAlikeTextMaxBytes = 256;          // failures that begin with the same words say the same

// A line that was followed by this much output until the last telling line of its file is old news: the program had
// gone on after it. Wide enough for the dumps that libraries print while they die.
inline constexpr uint64_t kOldNewsBytes = 256 << 10;
inline bool IsOldNews(uint64_t offset, uint64_t last_offset_of_file) {
  return last_offset_of_file > offset && last_offset_of_file - offset > kOldNewsBytes;
}

// How one rank's process ended, in its own words: exactly one of code and signal is set.
struct RankExit {
  std::optional<int> code;
  std::optional<int> signal;
  bool core_dumped = false;
  bool out_of_memory = false;  // the kernel's OOM killer, told apart from another SIGKILL
  Wall time;                   // when its parent reaped it, node's own clock
  bool operator==(const RankExit&) const = default;
};

inline bool IsSuccess(const RankExit& exit) { return exit.code == 0; }
// What a shell would report: the code, or 128 + signal.
inline int ShellStatus(const RankExit& exit) { return exit.code ? *exit.code : 128 + exit.signal.value_or(0); }

// An instance's own process was a torchrun, and failed because a process beneath it had. The failure then tells of that
// process's end: torchrun's own exit code is always 1.
struct Torchrun {
  std::optional<uint32_t> rank;  // its number for that process; none: several ended with an exception each
  uint32_t pid = 0;
  bool operator==(const Torchrun&) const = default;
};

// A rank of MPI that ran beneath an instance's own process. The failure that names one tells of that rank's end, not of
// the end of mpirun or its daemon.
struct MpiRank {
  uint32_t rank = 0;
  uint32_t pid = 0;
  std::optional<int> launcher_status;  // what mpirun ended with because of it, as a shell says it
  bool operator==(const MpiRank&) const = default;
};

// A line of a rank's output that a rule of the taxonomy matched.
struct LineMatch {
  std::string rule;     // the rule's code, "CudaEccUncorrectable"
  std::string line;     // cleaned of colours and prefixes, at most kErrorTextMaxBytes
  std::string file;     // "rank0.err"
  uint64_t offset = 0;  // of the line in that file, bytes
  bool operator==(const LineMatch&) const = default;
};

// Where a failed rank's message comes from.
enum class ErrorSource { kProcess, kLog, kHang, kExitHang, kC4d, kNode, kPreflight, kProvider, kUser };
std::string_view Name(ErrorSource source);  // "exit-hang"
std::optional<ErrorSource> ParseErrorSource(std::string_view name);

// Where a rank lives.
struct RankPlace {
  InstanceIndex instance{};
  NodeIndex node{};
};

// Everything known about one rank that did not end well.
struct RankFailure {
  Rank rank{};
  InstanceIndex instance{};
  Attempt attempt{};
  NodeIndex node{};
  std::optional<RankExit> exit;    // none: its node or shim was lost
  std::string lost_reason;         // set when exit is not: "node-1 was lost: …"
  bool node_lost = false;          // with lost_reason: the whole node, not only the shim
  std::string exec_error;          // why the command could not be executed; empty when it was
  int exec_errno = 0;              // with exec_error: what the system said (Linux numbers); 0: not known
  bool stopped_by_us = false;      // a master's order had it signalled before it ended
  Duration orphaned{};             // instead: it was stopped since no master was there for so long; zero: it was not
  std::optional<Wall> dump_start;  // when it was first seen writing a core
  Duration clock_uncertainty{};    // of times after correction to the master's clock
  std::vector<LineMatch> matches;  // in file order, first ones kept
  std::string last_error_line;     // last telling-looking line of stderr; empty when it printed nothing
  std::string error_file_message;  // torchelastic error file, if one was written
  std::optional<Wall> error_file_time;
  std::string retryable_text;    // of the job's own (RetryableErrorsAdded): the first one that its output's tail holds
  std::optional<uint64_t> step;  // of the training, the last one that it told
  std::optional<Torchrun> torchrun;  // none: its own process is what its exit is about
  std::optional<MpiRank> mpi_rank;   // whose exit this is; none: that of the instance's own process
  bool is_launcher = false;          // that process is mpirun: what it says, and its exit, are about the ranks
  bool operator==(const RankFailure&) const = default;
};

// The earliest that its evidence shows: the exit, the start of its core dump, what the error file says.
std::optional<Wall> BeganAt(const RankFailure& failure);
// The matches that are no old news, in order; they point into the failure.
std::vector<const LineMatch*> FreshMatches(const RankFailure& failure);

enum class Retryable {
  kYes,
  kNo,
  kOncePerPlace,  // a crash that may be a cosmic ray the first time, a bug the second time at the same rank
};
std::string_view Name(Retryable retryable);
std::optional<Retryable> ParseRetryable(std::string_view name);

// How much has to be renewed.
enum class Severity { kIsolateNode = 1, kRestartProcesses = 2, kRetryInPlace = 3 };

// One failed rank in a judgement.
struct FailureDetail {
  Rank rank{};
  InstanceIndex instance{};
  NodeIndex node{};
  bool is_root = false;
  int error_code = 0;  // shell status; 0 when it has none (lost node)
  std::string fault;   // rule code
  std::string message;
  ErrorSource source = ErrorSource::kProcess;
  std::optional<uint32_t> mpi_rank;  // whose exit it is, in an MPI job
  bool operator==(const FailureDetail&) const = default;
};

// What a detector says about one failure of the job.
struct Judgement {
  std::optional<Rank> root_rank;  // none: all alike, no root rank
  InstanceIndex root_instance{};
  NodeIndex root_node{};
  std::optional<int> error_code;  // shell status of the root cause
  std::string fault;              // rule code: "UserException", "Sigkill", …
  std::string category;           // hardware, network, storage, system, framework, user, preemption
  std::string message;            // one line: what the root cause printed, or what happened to it
  ErrorSource source = ErrorSource::kProcess;
  Retryable retryable = Retryable::kNo;
  Severity severity = Severity::kRestartProcesses;
  bool node_suspect = false;
  bool address_in_use = false;         // a rank could not bind MASTER_PORT: a start failure, not the job's
  bool never_started = false;          // the command could not be executed at all: restarting can't help
  bool is_consequence = false;         // of another instance's failure, which has a judgement of its own beside this
  std::vector<std::string> reasons;    // the chain, in order: which rank, which line, which rule
  std::vector<FailureDetail> details;  // bounded: kDetailsMax, roots first
  uint32_t failed_ranks = 0;           // all of them, also beyond kDetailsMax
  std::string stacks;                  // of a hang: the file of the call stacks, within the job's directory
  // A collective operation timed out before a hang was found: the --job-hang-interval that would have found it first.
  std::optional<std::chrono::seconds> advised_interval;
  bool operator==(const Judgement&) const = default;
};
inline constexpr size_t kDetailsMax = 256;
inline bool IsHang(const Judgement& judgement) {
  return judgement.source == ErrorSource::kHang || judgement.source == ErrorSource::kExitHang ||
         judgement.source == ErrorSource::kC4d;
}

}  // namespace aimaster
