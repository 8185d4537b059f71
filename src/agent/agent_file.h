// agent.json of a node: who serves it now, and what an agent has to know before a master tells it anything. It is read
// by the next agent of this node, and by whoever wants to know whether one runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/process_identity.h"
#include "agent/tidings.h"
#include "core/error.h"

namespace aimaster::agent {

struct AgentFile {
  ProcessIdentity process;
  std::string boot_id;
  uint64_t greatest_epoch = 0;
  uint32_t orphan_timeout_ms = 0;  // 0: no master has told us yet
  uint64_t log_max_bytes = 0;
  std::string socket;                         // that ranks speak to us through; empty: there never was one
  std::vector<std::string> retryable_errors;  // the job's own
  std::optional<HangSetting> hang_setting;    // the last that a rank has set
  bool operator==(const AgentFile&) const = default;
};
std::string FormatAgentFile(const AgentFile& file);
std::optional<AgentFile> ParseAgentFile(std::string_view text);

// The place of this node's agent: a lock that ends with the process, whatever ends it.
// An error when another process has it; tried for `patience_ms`, since a killed agent lets go a moment later. The
// descriptor has to stay open for as long as the place is ours.
Result<int> LockNode(const std::string& node_directory, int patience_ms);
// Whether another file stands where ours was: somebody removed it, and the next agent has locked its own.
bool HasLostNode(const std::string& node_directory, int lock);

}  // namespace aimaster::agent
