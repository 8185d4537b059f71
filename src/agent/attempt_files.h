// The documents of an attempt's directory, as values. claim.json, the tombstone and a lost attempt's ended.json are the
// agent's; started.json, exit files, the usual ended.json and `descendants` are the shim's (shim/launch_format.h).
//
//   claim.json     written before the shim starts: who this attempt is
//   tombstone      this attempt must never start (again)
//   ended.json     no process of this attempt exists; with "lost" when an agent had to see to that
//
// Promise: keys are only ever added; a reader ignores what it doesn't know.
//
// A document that can't be had says why. That it was never written is a fact to build upon; that it is damaged, or
// can't be looked at now, is none: whoever took the three for one would start a second life beside the first.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/process_identity.h"
#include "core/error.h"
#include "core/time.h"

namespace aimaster::agent {

enum class Unread {
  kAbsent,
  kGarbage,
  kUnreadable,  // now; a moment later it may be read
};
Unread WhyUnread(int error);
template <typename T>
using Document = std::expected<T, Unread>;

// Which life of which instance; the key of everything the agent holds.
struct AttemptKey {
  uint32_t instance = 0;
  uint32_t attempt = 0;
  auto operator<=>(const AttemptKey&) const = default;
};

// In the tombstone of an attempt whose instance's number nobody knew.
inline constexpr uint32_t kNoInstance = UINT32_MAX;

struct ClaimedRank {
  uint32_t rank = 0;
  uint32_t local = 0;
  bool operator==(const ClaimedRank&) const = default;
};

struct Claim {
  AttemptKey key;
  std::string job_id;
  std::string instance_name;
  uint32_t round = 0;
  uint64_t epoch = 0;
  std::string boot_id;
  std::string log_directory;
  std::vector<ClaimedRank> ranks;
  bool operator==(const Claim&) const = default;
};
std::string FormatClaim(const Claim& claim);
std::optional<Claim> ParseClaim(std::string_view text);

std::string FormatTombstone(const AttemptKey& key);
std::optional<AttemptKey> ParseTombstone(std::string_view text);

struct StartedRank {
  ClaimedRank rank;
  ProcessIdentity process;
};
struct Started {
  ProcessIdentity shim;
  std::string boot_id;
  pid_t session = 0;
  std::vector<StartedRank> ranks;
};
std::optional<Started> ParseStarted(std::string_view text);

struct RankExitFile {
  std::optional<int32_t> code;  // exactly one of code and signal
  std::optional<int32_t> signal;
  bool core = false;
  bool stopped_by_us = false;
  int64_t orphaned_ms = 0;   // stopped since there had been no master for so long
  int64_t time_ns = 0;       // by the node's wall clock then
  int64_t monotonic_ns = 0;  // by the clock of that boot; 0: not said
  std::string exec_error;    // empty: the program was executed
  int32_t exec_errno = 0;
};
std::optional<RankExitFile> ParseRankExit(std::string_view text);
// When it was by the wall clock of `now`, which may have been set since; `now` is of the same boot.
int64_t ExitTimeNs(const RankExitFile& exit, Moment now);

// What a shim keeps in memory (shim/launch_format.h): exits by local number.
std::map<uint32_t, RankExitFile> ParseKeptExits(std::string_view pages);
// Of a living shim; empty where it can't be looked into.
std::map<uint32_t, RankExitFile> ReadKeptExits(pid_t shim);

struct Ended {
  std::string lost_reason;  // empty: the shim ended by itself
};
std::string FormatEnded(const Ended& ended, int64_t time_ns);
std::optional<Ended> ParseEnded(std::string_view text);

// Lines "pid start_ticks"; what is no such line is left out.
std::vector<ProcessIdentity> ParseDescendants(std::string_view text);

// Who holds the shim's lock. It is the one proof of life: who holds it lives, whatever the documents say.
struct ShimLock {
  enum class State {
    kFree,
    kHeld,
    kUnknown,  // it could not be asked for: only who is known to be gone counts as gone
  };
  State state = State::kFree;
  pid_t holder = 0;  // 0: one that can't be seen from here
  int error = 0;     // an errno, when it is unknown
};

// Where they lie.
class AttemptDirectory {
 public:
  AttemptDirectory() = default;
  explicit AttemptDirectory(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string File(std::string_view name) const { return path_ + "/" + std::string(name); }
  std::string RankFile(uint32_t local, std::string_view extension) const;

  Document<Claim> ReadClaim() const;
  Document<AttemptKey> ReadTombstone() const;
  Document<Started> ReadStarted() const;
  std::optional<RankExitFile> ReadRankExit(uint32_t local) const;
  Document<Ended> ReadEnded() const;
  std::vector<ProcessIdentity> ReadDescendants() const;
  bool HasTombstone() const;
  // Makes the directory where needed.
  Status WriteTombstone(const AttemptKey& key) const;

  // Whether a shim ever got so far that a rank may have lived: it reserves the exit files before it starts anyone.
  // True as well when that can't be found out.
  bool HasBegun() const;

  ShimLock Lock() const;

 private:
  std::string path_;
};

}  // namespace aimaster::agent
