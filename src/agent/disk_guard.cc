#include "agent/disk_guard.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "agent/limits.h"
#include "agent/log.h"

namespace aimaster::agent {
namespace {

// A file system that does not say counts as roomy: what it can't tell is no reason to throw output away.
DiskSpace SpaceOf(const std::string& directory, uint64_t bytes_per_second = 0) {
  struct statvfs status{};
  if (::statvfs(directory.c_str(), &status) != 0 || status.f_blocks == 0) return {UINT64_MAX, UINT64_MAX, 0};
  return {status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize, bytes_per_second};
}

}  // namespace

uint64_t Watermark(const DiskSpace& space) {
  const uint64_t printed = std::min(space.bytes_per_second, space.total_bytes / 4);
  return std::max(printed, std::clamp<uint64_t>(space.total_bytes / 50, kDiskWatermarkMin, kDiskWatermarkMax));
}

DiskState Judge(const DiskSpace& space, DiskState before) {
  const uint64_t watermark = Watermark(space);
  if (space.free_bytes < (before == DiskState::kScarce ? 2 * watermark : watermark)) return DiskState::kScarce;
  return space.free_bytes < kDiskLookFactor * watermark ? DiskState::kLooking : DiskState::kRoomy;
}

void DiskGuard::Open() {
  if (!has_reserve_) MakeReserve();
}

void DiskGuard::Close() {
  if (std::exchange(has_reserve_, false)) ::unlink(reserve_path_.c_str());
}

void DiskGuard::MakeReserve() {
  const std::string directory = reserve_path_.substr(0, reserve_path_.rfind('/') + 1);
  if (SpaceOf(directory).free_bytes < kDiskReserveBytes * kDiskLookFactor) return;
  const int fd = ::open(reserve_path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return;
  has_reserve_ = ::posix_fallocate(fd, 0, kDiskReserveBytes) == 0;
  ::close(fd);
  if (!has_reserve_) ::unlink(reserve_path_.c_str());
}

DiskState DiskGuard::Look(const std::string& directory, uint64_t bytes_per_second) {
  const DiskSpace output = SpaceOf(directory, bytes_per_second);
  const DiskSpace own = SpaceOf(reserve_path_.substr(0, reserve_path_.rfind('/') + 1));
  const DiskState state = std::max(Judge(output, state_), Judge(own, state_));
  if (state == DiskState::kScarce && state_ != DiskState::kScarce) {
    LogError("the disk is nearly full, " + std::to_string(std::min(output.free_bytes, own.free_bytes) >> 10) +
             " KiB are left for " + directory + ": giving the reserve and old output back");
    if (has_reserve_) ::unlink(reserve_path_.c_str());
    has_reserve_ = false;
  } else if (state != DiskState::kScarce && state_ == DiskState::kScarce) {
    LogInfo("there is room on the disk again");
  }
  if (state == DiskState::kRoomy && state_ != DiskState::kRoomy && !has_reserve_) MakeReserve();
  state_ = state;
  return state;
}

}  // namespace aimaster::agent
