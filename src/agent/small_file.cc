#include "agent/small_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace aimaster::agent {
namespace {

std::unexpected<Error> FailErrno(const std::string& what, const std::string& path) {
  return Fail(ErrorKind::kEnvironment, what + " " + path + ": " + std::strerror(errno));
}

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

std::optional<std::string> ReadSmallFile(const std::string& path, size_t max) {
  // A program may leave a pipe where a file is expected; opening it must not wait for a writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return std::nullopt;
  std::string text;
  bool whole = false;
  char buffer[8192];
  while (text.size() <= max) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      whole = got == 0;
      break;
    }
    text.append(buffer, static_cast<size_t>(got));
  }
  ::close(fd);
  if (!whole || text.size() > max) return std::nullopt;
  return text;
}

Status WriteSmallFile(const std::string& path, std::string_view bytes) {
  const std::string temporary = path + ".tmp";
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return FailErrno("cannot create", temporary);
  const bool written = WriteAll(fd, bytes);
  if (::close(fd) != 0 || !written) return FailErrno("cannot write", temporary);
  if (::rename(temporary.c_str(), path.c_str()) != 0) return FailErrno("cannot rename to", path);
  return {};
}

bool FileExists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

Status MakeDirectories(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) return FailErrno("cannot create", part);
    if (end == std::string::npos) return {};
  }
}

}  // namespace aimaster::agent
