#include "agent/small_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace aimaster::agent {
namespace {

std::unexpected<Error> FailErrno(const std::string& what, const std::string& path) {
  return Fail(ErrorKind::kEnvironment, what + " " + path + ": " + std::strerror(errno));
}

}  // namespace

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

std::expected<std::string, int> ReadWhole(const std::string& path, size_t max) {
  // A program may leave a pipe where a file is expected; opening it must not wait for a writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return std::unexpected(errno);
  std::string text;
  int error = EFBIG;
  char buffer[8192];
  while (text.size() <= max) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      error = got == 0 ? 0 : errno;
      break;
    }
    text.append(buffer, static_cast<size_t>(got));
  }
  ::close(fd);
  if (error == 0 && text.size() > max) error = EFBIG;
  if (error != 0) return std::unexpected(error);
  return text;
}

std::optional<std::string> ReadSmallFile(const std::string& path, size_t max) {
  auto text = ReadWhole(path, max);
  return text ? std::optional(std::move(*text)) : std::nullopt;
}

bool MeansAbsent(int error) { return error == ENOENT || error == ENOTDIR; }

Status WriteSmallFile(const std::string& path, std::string_view bytes) {
  const std::string temporary = path + ".tmp";
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return FailErrno("cannot create", temporary);
  const bool written = WriteAll(fd, bytes);
  if (::close(fd) != 0 || !written) return FailErrno("cannot write", temporary);
  if (::rename(temporary.c_str(), path.c_str()) != 0) return FailErrno("cannot rename to", path);
  return {};
}

bool FileExists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0 || !MeansAbsent(errno); }

std::expected<std::vector<std::string>, int> ListDirectory(const std::string& path) {
  DIR* const directory = ::opendir(path.c_str());
  if (directory == nullptr) return std::unexpected(errno);
  std::vector<std::string> names;
  int error = 0;
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(directory);
    if (entry == nullptr) {
      error = errno;
      break;
    }
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  ::closedir(directory);
  if (error != 0) return std::unexpected(error);
  std::ranges::sort(names);
  return names;
}

Status MakeDirectories(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) return FailErrno("cannot create", part);
    if (end == std::string::npos) return {};
  }
}

}  // namespace aimaster::agent
