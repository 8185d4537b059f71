#include "agent/launch_file.h"

#include "shim/launch_format.h"

namespace aimaster::agent {
namespace {

void Put(std::string& bytes, const std::string& text) {
  bytes += text;
  bytes += '\0';
}

void Put(std::string& bytes, const char* key, const std::string& value) { Put(bytes, std::string(key) + "=" + value); }
void Put(std::string& bytes, const char* key, size_t value) { Put(bytes, key, std::to_string(value)); }

}  // namespace

std::string FormatLaunch(const Launch& launch) {
  std::string bytes;
  Put(bytes, std::string(AIMASTER_LAUNCH_VERSION));
  Put(bytes, "instance", launch.instance_name);
  Put(bytes, "attempt", launch.attempt);
  Put(bytes, "stop_grace_ms", launch.stop_grace_ms);
  Put(bytes, "log_dir", launch.log_directory);
  if (!launch.lease.empty()) {
    Put(bytes, "lease", launch.lease);
    Put(bytes, "orphan_timeout_ms", launch.orphan_timeout_ms);
  }
  Put(bytes, "ranks", launch.ranks.size());
  for (const LaunchRank& rank : launch.ranks) {
    Put(bytes, "rank", rank.rank);
    Put(bytes, "local", rank.local);
    Put(bytes, "cwd", launch.working_directory);
    Put(bytes, "argc", launch.command.size());
    for (const std::string& argument : launch.command) Put(bytes, argument);
    Put(bytes, "envc", rank.environment.size());
    for (const auto& [name, value] : rank.environment) Put(bytes, name + "=" + value);
  }
  Put(bytes, std::string(AIMASTER_LAUNCH_END));
  return bytes;
}

}  // namespace aimaster::agent
