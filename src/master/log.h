// The master's own log: plain lines with the time, to stderr, which its starter directs to aimaster.log.
#pragma once

#include <string_view>

namespace aimaster {
void Log(std::string_view line);
}  // namespace aimaster
