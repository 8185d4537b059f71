#include "agent/socket_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/fnv1a.h"

namespace aimaster {
namespace {

using Path = std::filesystem::path;

bool Fits(const Path& path) { return path.native().size() <= kSocketPathMaxBytes; }

// Names a long path in 16 letters: the same place always gives the same socket.
std::string ShortNameOf(const Path& path) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(Fnv1a(path.native())));
  return text;
}

// A directory in /tmp is anybody's to make: it must be ours, no link, and closed to others.
Status MakePrivateDirectory(const Path& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return Fail(ErrorKind::kEnvironment, "cannot create " + path.string() + " for sockets: " + std::strerror(errno) +
                                             "; set XDG_RUNTIME_DIR to a directory of yours");
  }
  struct stat status = {};
  if (lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid() ||
      (status.st_mode & 077) != 0) {
    return Fail(ErrorKind::kEnvironment, path.string() +
                                             " is not a directory that only you can use; remove it, or set "
                                             "XDG_RUNTIME_DIR to a directory of yours");
  }
  return {};
}

}  // namespace

Result<Path> SocketPath(const Path& directory, std::string_view name) {
  const Path wanted = directory / name;
  if (Fits(wanted)) return wanted;
  const std::string file = ShortNameOf(wanted) + ".sock";
  // A login through su or cron often leaves the variable with a directory that is another user's, or gone.
  if (const char* runtime = std::getenv("XDG_RUNTIME_DIR"); runtime != nullptr && runtime[0] == '/') {
    const Path parent = Path(runtime) / "aimaster";
    if (Fits(parent / file) && MakePrivateDirectory(parent)) return parent / file;
  }
  const Path parent = "/tmp/aimaster-" + std::to_string(geteuid());
  if (const Status made = MakePrivateDirectory(parent); !made) return std::unexpected(made.error());
  return parent / file;
}

}  // namespace aimaster
