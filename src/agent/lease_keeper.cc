#include "agent/lease_keeper.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "shim/lease_format.h"

namespace aimaster::agent {

LeaseKeeper::LeaseKeeper(std::string path, std::string boot_id, int64_t writer, Duration timeout)
    : path_(std::move(path)), boot_id_(std::move(boot_id)), writer_(writer), count_(timeout) {}

LeaseKeeper::~LeaseKeeper() {
  if (fd_ >= 0) ::close(fd_);
}

Status LeaseKeeper::Open(Monotonic now) {
  const int64_t now_ns = now.since_origin.count();
  count_.Begin(now, std::nullopt);
  // Never replaced: shims hold the file that they found.
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd_ < 0) return Fail(ErrorKind::kEnvironment, "cannot open " + path_ + ": " + std::strerror(errno));
  Lease lease{};
  if (::pread(fd_, &lease, sizeof lease, 0) == static_cast<ssize_t>(sizeof lease) &&
      IsGoodLease(&lease, boot_id_.c_str(), now_ns)) {
    count_.Begin(now, Monotonic{Duration(lease.renewed_ns)});
    return {};
  }
  return Write(now);
}

Status LeaseKeeper::Renew(Monotonic now, Duration timeout) {
  count_.Renew(now, timeout);
  return Write(now);
}

Status LeaseKeeper::Write(Monotonic renewed) {
  if (fd_ < 0) fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  const Lease lease = MakeLease(boot_id_.c_str(), writer_, renewed.since_origin.count(), timeout().count());
  ssize_t written = -1;
  do {
    if (fd_ >= 0) written = ::pwrite(fd_, &lease, sizeof lease, 0);
  } while (fd_ >= 0 && written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(sizeof lease)) return {};
  return Fail(ErrorKind::kEnvironment, "cannot write " + path_ + ": " + std::strerror(errno));
}

}  // namespace aimaster::agent
