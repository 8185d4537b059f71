// The agent's own log: plain lines with time and level on stderr, which whoever started the agent sends to a file.
// A logging library was rejected: a node's agent has one thread, one destination and ten megabytes to live in.
#pragma once

#include <string_view>

namespace aimaster::agent {

void LogInfo(std::string_view line);
void LogWarning(std::string_view line);
void LogError(std::string_view line);

}  // namespace aimaster::agent
