#include "journal/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace aimaster {
namespace {

std::unexpected<Error> FailErrno(const std::string& what, const std::filesystem::path& path) {
  const int error = errno;
  return Fail(error == ENOENT ? ErrorKind::kNotFound : ErrorKind::kEnvironment,
              "cannot " + what + " " + path.string() + ": " + std::strerror(error));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

Status WriteFileAtomically(const std::filesystem::path& path, std::string_view bytes, mode_t mode) {
  const std::filesystem::path temporary = path.string() + ".tmp." + std::to_string(getpid());
  {
    const Descriptor file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
    if (file.get() < 0) return FailErrno("write", path);
    if (!WriteAll(file.get(), bytes) || fsync(file.get()) != 0) {
      const auto failed = FailErrno("write", path);
      unlink(temporary.c_str());
      return failed;
    }
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    const auto failed = FailErrno("write", path);
    unlink(temporary.c_str());
    return failed;
  }
  const Descriptor directory(open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0) fsync(directory.get());
  return {};
}

Result<std::string> ReadFile(const std::filesystem::path& path, size_t max_bytes) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return FailErrno("read", path);
  struct stat status = {};
  if (fstat(file.get(), &status) != 0) return FailErrno("read", path);
  if (!S_ISREG(status.st_mode)) return Fail(ErrorKind::kEnvironment, path.string() + " is not a regular file");
  if (static_cast<uint64_t>(status.st_size) > max_bytes) {
    return Fail(ErrorKind::kEnvironment, path.string() + " is larger than " + std::to_string(max_bytes) + " bytes");
  }
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got = read(file.get(), bytes.data() + have, bytes.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailErrno("read", path);
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

}  // namespace aimaster
