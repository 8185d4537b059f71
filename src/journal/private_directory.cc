#include "journal/private_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "journal/files.h"

namespace aimaster {

Status MakePrivateDirectories(const std::filesystem::path& path) {
  std::filesystem::path made;
  for (const std::filesystem::path& part : path) {
    made /= part;
    if (mkdir(made.c_str(), 0700) == 0) continue;
    const int error = errno;
    struct stat status = {};
    if (stat(made.c_str(), &status) != 0) return Fail(ErrorKind::kEnvironment, std::strerror(error));
    if (!S_ISDIR(status.st_mode)) return Fail(ErrorKind::kEnvironment, std::strerror(ENOTDIR));
  }
  return {};
}

Status CheckPrivate(const std::filesystem::path& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) return {};  // whoever opens it says so
  const bool others_write = (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  if ((status.st_uid == geteuid() && !others_write) || IsOnNetworkFileSystem(path)) return {};
  if (status.st_uid != geteuid()) {
    return Fail(ErrorKind::kEnvironment, path.string() + " belongs to user " + std::to_string(status.st_uid) +
                                             " and you are user " + std::to_string(geteuid()) +
                                             ": a job is used by its owner alone");
  }
  return Fail(ErrorKind::kEnvironment,
              "users other than you may write in " + path.string() + ": look at what is in it, then chmod 700 it");
}

}  // namespace aimaster
