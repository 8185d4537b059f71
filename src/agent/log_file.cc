#include "agent/log_file.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "agent/descriptor_limit.h"
#include "agent/limits.h"
#include "agent/log.h"

namespace aimaster::agent {
namespace {

constexpr uint64_t kAlignment = 64 << 10;  // of holes; a multiple of every file system's block

int64_t ChangedNs(const struct stat& status) { return status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec; }

}  // namespace

LogFile::LogFile(std::string path, uint64_t max_bytes) : path_(std::move(path)), max_bytes_(max_bytes) {}

LogFile::~LogFile() {
  if (fd_ >= 0) ::close(fd_);
}

LogFile::LogFile(LogFile&& other) noexcept
    : path_(std::move(other.path_)),
      max_bytes_(other.max_bytes_),
      fd_(std::exchange(other.fd_, -1)),
      writable_(other.writable_),
      can_bound_(other.can_bound_),
      size_(other.size_),
      blocks_bytes_(other.blocks_bytes_),
      hole_end_(other.hole_end_),
      has_output_(other.has_output_),
      last_output_wall_ns_(other.last_output_wall_ns_),
      changed_ns_(other.changed_ns_) {}

bool LogFile::Open() {
  if (fd_ >= 0) return true;
  fd_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  writable_ = fd_ >= 0;
  if (fd_ < 0) fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  return fd_ >= 0;
}

// One of the last that we may have open is not kept.
void LogFile::LetGo() {
  if (fd_ >= 0 && IsAmongTheLast(fd_)) ::close(std::exchange(fd_, -1));
}

uint64_t LogFile::Look() {
  struct stat status{};
  const bool seen = Open() && ::fstat(fd_, &status) == 0;
  LetGo();
  if (!seen || !S_ISREG(status.st_mode)) return 0;
  const auto size = static_cast<uint64_t>(status.st_size);
  blocks_bytes_ = static_cast<uint64_t>(status.st_blocks) * 512;
  const bool shrank = size < size_;
  if (shrank) hole_end_ = 0;
  const int64_t changed_ns = ChangedNs(status);
  const bool was_rewritten = size == size_ && size > 0 && changed_ns != changed_ns_;
  // A truncation is activity, also one that left nothing.
  const uint64_t grown = shrank ? std::max<uint64_t>(size, 1) : was_rewritten ? 1 : size - size_;
  size_ = size;
  changed_ns_ = changed_ns;
  has_output_ = has_output_ || grown > 0;
  if (grown > 0) last_output_wall_ns_ = changed_ns;
  return grown;
}

size_t LogFile::Read(uint64_t offset, std::span<char> bytes) {
  if (!Open()) return 0;
  const ssize_t got = ::pread(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
  LetGo();
  return static_cast<size_t>(std::max<ssize_t>(got, 0));
}

bool LogFile::Bound(uint64_t at_most) {
  const uint64_t max_bytes = max_bytes_ == 0 || at_most == 0 ? max_bytes_ + at_most : std::min(max_bytes_, at_most);
  if (max_bytes == 0 || !can_bound_ || blocks_bytes_ <= max_bytes || !Open() || !writable_) return false;
  const bool has_more = GiveBack(max_bytes);
  // What we change is no output. What comes in between shows by its size.
  struct stat status{};
  if (::fstat(fd_, &status) == 0) changed_ns_ = ChangedNs(status);
  LetGo();
  return has_more;
}

bool LogFile::GiveBack(uint64_t max_bytes) {
  const uint64_t keep = max_bytes / 2;
  const uint64_t wanted_end = size_ > keep ? (size_ - keep) / kAlignment * kAlignment : 0;
  if (wanted_end <= hole_end_) return false;
  const uint64_t end = std::min(wanted_end, hole_end_ + kPunchStepBytes);
  const auto start = static_cast<off_t>(hole_end_);
  if (::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, start, static_cast<off_t>(end) - start) == 0) {
    hole_end_ = end;
    return end < wanted_end;
  }
  if ((errno == EOPNOTSUPP || errno == ENOSYS || errno == ENODEV) && ::ftruncate(fd_, 0) == 0) {
    size_ = 0;
    hole_end_ = 0;
    return false;
  }
  LogWarning("cannot bound " + path_ + ": error " + std::to_string(errno));
  can_bound_ = false;
  return false;
}

}  // namespace aimaster::agent
