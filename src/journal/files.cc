#include "journal/files.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

namespace aimaster {
namespace {

std::unexpected<Error> FailErrno(const std::string& what, const std::filesystem::path& path) {
  const int error = errno;
  return Fail(error == ENOENT                      ? ErrorKind::kNotFound
              : error == ENOSPC || error == EDQUOT ? ErrorKind::kDiskFull
                                                   : ErrorKind::kEnvironment,
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

}  // namespace

bool WriteAll(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

Status WriteFileAtomically(const std::filesystem::path& path, std::string_view bytes, mode_t mode) {
  // No two writers share a temporary file, and none is deterred by what a dead one has left behind.
  static std::atomic<uint32_t> number = 0;
  const std::filesystem::path temporary =
      path.string() + ".tmp." + std::to_string(getpid()) + "." + std::to_string(++number);
  unlink(temporary.c_str());
  const auto fail = [&] {
    const auto failed = FailErrno("write", path);
    unlink(temporary.c_str());
    return failed;
  };
  {
    const Descriptor file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (file.get() < 0) return FailErrno("write", path);
    if (!WriteAll(file.get(), bytes) || fsync(file.get()) != 0) return fail();
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) return fail();
  return SyncDirectory(path.parent_path());
}

std::string WhyUnwritable(const std::filesystem::path& directory) {
  const std::string probe = directory / ".probe";
  const int fd = open(probe.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return std::strerror(errno);
  const int error = write(fd, "x", 1) == 1 ? 0 : errno;
  close(fd);
  unlink(probe.c_str());
  return error == 0 ? "" : std::strerror(error);
}

std::string FileSizeLimitNote() {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  return "; no file of this process may grow beyond " + std::to_string(limit.rlim_cur) + " bytes (ulimit -f)";
}

Status SyncDirectory(const std::filesystem::path& directory) {
  const Descriptor opened(open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems can't sync a directory and say EINVAL; their entries are as durable as they get.
  if (opened.get() < 0 || (fsync(opened.get()) != 0 && errno != EINVAL)) return FailErrno("sync", directory);
  return {};
}

bool IsOnNetworkFileSystem(const std::filesystem::path& directory) {
  struct statfs status = {};
  if (statfs(directory.empty() ? "." : directory.c_str(), &status) != 0) return false;
  switch (static_cast<uint32_t>(status.f_type)) {
    case 0x6969:      // NFS
    case 0xFF534D42:  // CIFS
    case 0xFE534D42:  // SMB2
    case 0x517B:      // SMB
    case 0x0BD00BD0:  // Lustre
    case 0x47504653:  // GPFS
    case 0x65735546:  // FUSE, also virtiofs
    case 0x19830326:  // BeeGFS
    case 0x00C36400:  // Ceph
    case 0x01021997:  // 9p
    case 0x5346414F:  // AFS
    case 0x7461636F:  // OCFS2
    case 0x01161970:  // GFS2
    case 0x20030528:  // OrangeFS
    case 0x786F4256:  // VirtualBox shared folder
      return true;
    default:
      return false;
  }
}

Result<std::string> ReadFile(const std::filesystem::path& path, size_t max_bytes) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
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
