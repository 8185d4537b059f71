// Small files: read whole within a bound, written so that a reader sees all or nothing.
// Durability is not asked for here: what the agent writes concerns processes of this boot, and a machine that crashes
// takes them along. So nothing waits for the disk on the way to a start.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace aimaster::agent {

// At most `max` bytes of it, or an errno; EFBIG when it is larger.
std::expected<std::string, int> ReadWhole(const std::string& path, size_t max);
// For those to whom it is the same why it can't be read.
std::optional<std::string> ReadSmallFile(const std::string& path, size_t max);
// Whether this errno says that there is no such file, and not only that it can't be looked at.
bool MeansAbsent(int error);
// All of it; false when the descriptor takes no more, with errno.
bool WriteAll(int fd, std::string_view bytes);
Status WriteSmallFile(const std::string& path, std::string_view bytes);  // mode 0600, by rename
// False only for one that is known not to be there.
bool FileExists(const std::string& path);
// The names of its entries, sorted, without those that begin with a dot; or an errno.
std::expected<std::vector<std::string>, int> ListDirectory(const std::string& path);
// Like `mkdir -p`, new ones with mode 0700.
Status MakeDirectories(const std::string& path);

}  // namespace aimaster::agent
