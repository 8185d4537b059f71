// Writes what the shim reads (shim/launch_format.h), and reads again who the attempt is, should its claim be lost: the
// shim skips header keys that it doesn't know, so the launch file carries the claim besides.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/attempt_files.h"

namespace aimaster::agent {

struct LaunchRank {
  uint32_t rank = 0;
  uint32_t local = 0;
  std::map<std::string, std::string> environment;  // complete
};

struct Launch {
  Claim claim;  // its ranks are those below
  uint32_t stop_grace_ms = 0;
  std::string lease;  // the node's; empty: none
  uint32_t orphan_timeout_ms = 0;
  std::string working_directory;
  std::vector<std::string> command;
  std::vector<LaunchRank> ranks;
};

std::string FormatLaunch(const Launch& launch);
// Nothing when the file breaks its format, or an older agent wrote it, which did not say who the attempt is. Of what is
// there the shim's own affairs are left out: grace and lease.
std::optional<Launch> ParseLaunch(std::string_view bytes);
// The claim alone.
std::optional<Claim> ParseLaunchClaim(std::string_view bytes);

}  // namespace aimaster::agent
