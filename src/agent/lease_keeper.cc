#include "agent/lease_keeper.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "agent/limits.h"
#include "shim/lease_format.h"

namespace aimaster::agent {

LeaseKeeper::LeaseKeeper(std::string path, std::string boot_id, int64_t writer, Duration timeout)
    : path_(std::move(path)), boot_id_(std::move(boot_id)), writer_(writer), timeout_(timeout) {}

LeaseKeeper::~LeaseKeeper() {
  if (fd_ >= 0) ::close(fd_);
}

Status LeaseKeeper::Open(Monotonic now) {
  const int64_t now_ns = now.since_origin.count();
  // A master that has just come needs a moment to be heard by an agent that has just come.
  const Duration at_least = std::min<Duration>(timeout_, kWelcomeMax);
  watch_ = BeginLeaseWatch(now_ns);
  // Never replaced: shims hold the file that they found.
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd_ < 0) return Fail(ErrorKind::kEnvironment, "cannot open " + path_ + ": " + std::strerror(errno));
  Lease lease{};
  if (::pread(fd_, &lease, sizeof lease, 0) == static_cast<ssize_t>(sizeof lease) &&
      IsGoodLease(&lease, boot_id_.c_str(), now_ns)) {
    watch_ = BeginLeaseWatch(std::max(lease.renewed_ns, now_ns - (timeout_ - at_least).count()));
    return {};
  }
  return Write(now);
}

Status LeaseKeeper::Renew(Monotonic now, Duration timeout) {
  timeout_ = timeout;
  watch_ = BeginLeaseWatch(now.since_origin.count());
  return Write(now);
}

Duration LeaseKeeper::Look(Monotonic now) {
  const int64_t now_ns = now.since_origin.count();
  const bool has_expired = LeaseHasExpired(&watch_, now_ns, timeout_.count(), pace().count());
  return has_expired ? Duration(now_ns - watch_.since_ns) : Duration::zero();
}

Duration LeaseKeeper::pace() const {
  return std::min<Duration>(Duration(LeasePaceNs(timeout_.count())), kLeasePaceMax);
}

Status LeaseKeeper::Write(Monotonic renewed) {
  if (fd_ < 0) fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  const Lease lease = MakeLease(boot_id_.c_str(), writer_, renewed.since_origin.count(), timeout_.count());
  ssize_t written = -1;
  do {
    if (fd_ >= 0) written = ::pwrite(fd_, &lease, sizeof lease, 0);
  } while (fd_ >= 0 && written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(sizeof lease)) return {};
  return Fail(ErrorKind::kEnvironment, "cannot write " + path_ + ": " + std::strerror(errno));
}

}  // namespace aimaster::agent
