// Writes what the shim reads (shim/launch_format.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace aimaster::agent {

struct LaunchRank {
  uint32_t rank = 0;
  uint32_t local = 0;
  std::map<std::string, std::string> environment;  // complete
};

struct Launch {
  std::string instance_name;
  uint32_t attempt = 0;
  uint32_t stop_grace_ms = 0;
  std::string log_directory;
  std::string lease;  // the node's; empty: none
  uint32_t orphan_timeout_ms = 0;
  std::string working_directory;
  std::vector<std::string> command;
  std::vector<LaunchRank> ranks;
};

std::string FormatLaunch(const Launch& launch);

}  // namespace aimaster::agent
