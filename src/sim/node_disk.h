// NodeDisk: what survives on a node: the agent's file, the lease, and a directory per attempt. Plain data; who may
// write what, and when, is the business of SimAgent and SimShim, as it is that of agent and shim.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/attempt_files.h"
#include "core/time.h"

namespace aimaster::sim {

using agent::AttemptKey;

// What of a rank's directory outlives it.
struct RankFiles {
  bool has_printed = false;
  Monotonic printed;  // last, or when it was made
  std::optional<agent::RankExitFile> exit;
};

struct AttemptDirectory {
  bool is_claimed = false;
  uint32_t boot = 0;  // of the claim
  uint32_t first_rank = 0;
  uint32_t round = 0;
  bool has_tombstone = false;
  uint64_t lock_holder = 0;  // a shim; 0: none
  bool is_reserved = false;  // exit files: nobody is started before
  bool is_started = false;
  std::vector<RankFiles> ranks;
  std::optional<agent::Ended> ended;
};

struct NodeDisk {
  uint64_t greatest_epoch = 0;
  Duration orphan_timeout{};  // zero: no master has told yet
  std::optional<Monotonic> lease_renewed;
  uint32_t lease_boot = 0;
  std::map<AttemptKey, AttemptDirectory> attempts;
};

}  // namespace aimaster::sim
