// The documents of an attempt's directory, as values. claim.json, the tombstone and a lost attempt's ended.json are the
// agent's; started.json, exit files, the usual ended.json and `descendants` are the shim's (shim/launch_format.h).
//
//   claim.json     written before the shim starts: who this attempt is
//   tombstone      this attempt must never start (again)
//   ended.json     no process of this attempt exists; with "lost" when an agent had to see to that
//
// Promise: keys are only ever added; a reader ignores what it doesn't know.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/process_identity.h"
#include "core/error.h"
#include "core/time.h"

namespace aimaster::agent {

// Which life of which instance; the key of everything the agent holds.
struct AttemptKey {
  uint32_t instance = 0;
  uint32_t attempt = 0;
  auto operator<=>(const AttemptKey&) const = default;
};

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
  uint32_t local = 0;
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

// Where they lie.
class AttemptDirectory {
 public:
  AttemptDirectory() = default;
  explicit AttemptDirectory(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string File(std::string_view name) const { return path_ + "/" + std::string(name); }
  std::string RankFile(uint32_t local, std::string_view extension) const;

  std::optional<Claim> ReadClaim() const;
  std::optional<AttemptKey> ReadTombstone() const;
  std::optional<Started> ReadStarted() const;
  std::optional<RankExitFile> ReadRankExit(uint32_t local) const;
  std::optional<Ended> ReadEnded() const;
  std::vector<ProcessIdentity> ReadDescendants() const;
  bool HasTombstone() const;
  // Makes the directory where needed.
  Status WriteTombstone(const AttemptKey& key) const;

  // Who holds the shim's lock: nobody (empty), or a pid; 0 for a holder that can't be seen from here, and when the
  // lock could not be asked for: only who is known to be gone counts as gone.
  std::optional<pid_t> LockHolder() const;

 private:
  std::string path_;
};

}  // namespace aimaster::agent
