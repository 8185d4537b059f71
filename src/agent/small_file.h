// Small files: read whole within a bound, written so that a reader sees all or nothing.
// Durability is not asked for here: what the agent writes concerns processes of this boot, and a machine that crashes
// takes them along. So nothing waits for the disk on the way to a start.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"

namespace aimaster::agent {

// At most `max` bytes of it; nothing when it can't be read, or is larger.
std::optional<std::string> ReadSmallFile(const std::string& path, size_t max);
Status WriteSmallFile(const std::string& path, std::string_view bytes);  // mode 0600, by rename
bool FileExists(const std::string& path);
// Like `mkdir -p`, new ones with mode 0700.
Status MakeDirectories(const std::string& path);

}  // namespace aimaster::agent
