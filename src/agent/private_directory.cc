#include "agent/private_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace aimaster::agent {

Status MakePrivateDirectory(const std::filesystem::path& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return Fail(ErrorKind::kEnvironment, "cannot create " + path.string() + ": " + std::strerror(errno));
  }
  if (IsPrivateDirectory(path)) return {};
  return Fail(ErrorKind::kEnvironment, path.string() + " is not a directory that only you can use; remove it");
}

bool IsPrivateDirectory(const std::filesystem::path& path) {
  struct stat status = {};
  return lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
         (status.st_mode & 077) == 0;
}

}  // namespace aimaster::agent
