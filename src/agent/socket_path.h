// SocketPath: a Unix socket for a job, whatever the length of its home. A socket's path has 107 bytes in all, and a
// home on a cluster easily needs more; then the socket lives in a short directory of this user instead.
//
// Relative paths after a chdir, and paths through /proc/self/fd, were rejected: the path goes into the environment of
// ranks, where it must work from any directory and in any process.
#pragma once

#include <filesystem>
#include <string_view>

#include "core/error.h"

namespace aimaster {

inline constexpr size_t kSocketPathMaxBytes = 107;  // sockaddr_un, less the zero at its end

// `<directory>/<name>` when that is short enough. Otherwise a path of this user's alone that only depends on the two:
// in $XDG_RUNTIME_DIR/aimaster, or in /tmp/aimaster-<uid>, which is made (0700) where it is missing and refused when
// somebody else could have put something there.
Result<std::filesystem::path> SocketPath(const std::filesystem::path& directory, std::string_view name);

}  // namespace aimaster
