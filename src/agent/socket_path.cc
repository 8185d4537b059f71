#include "agent/socket_path.h"

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "agent/private_directory.h"
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

}  // namespace

Result<Path> SocketPath(const Path& directory, std::string_view name) {
  const Path wanted = directory / name;
  if (Fits(wanted)) return wanted;
  const std::string file = ShortNameOf(wanted) + ".sock";
  // A login through su or cron often leaves the variable with a directory that is another user's, or gone.
  if (const char* runtime = std::getenv("XDG_RUNTIME_DIR"); runtime != nullptr && runtime[0] == '/') {
    const Path parent = Path(runtime) / "aimaster";
    if (Fits(parent / file) && agent::MakePrivateDirectory(parent)) return parent / file;
  }
  const Path parent = "/tmp/aimaster-" + std::to_string(geteuid());
  if (const Status made = agent::MakePrivateDirectory(parent); !made) {
    return Fail(made.error().kind, made.error().message + "; or set XDG_RUNTIME_DIR to a directory of yours");
  }
  return parent / file;
}

}  // namespace aimaster
