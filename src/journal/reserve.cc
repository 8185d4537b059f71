#include "journal/reserve.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <utility>

namespace aimaster {

constexpr uint64_t kRoomFactor = 4, kPartMinBytes = 64 << 10;

Reserve::Reserve(std::filesystem::path path) : path_(std::move(path)) {
  struct stat file{};
  is_held_ = lstat(path_.c_str(), &file) == 0 && S_ISREG(file.st_mode) && file.st_blocks > 0;
}

bool Reserve::TakeIfThereIsRoom(uint64_t bytes) {
  if (is_held_) return true;
  struct statvfs room{};
  if (statvfs(path_.parent_path().c_str(), &room) != 0) return false;
  if (uint64_t{room.f_bavail} * room.f_frsize < bytes * kRoomFactor) return false;
  return Take(bytes);
}

void Reserve::TakeWhatThereIs(uint64_t bytes) {
  while (!is_held_ && (bytes /= 2) >= kPartMinBytes) Take(bytes);
}

bool Reserve::Take(uint64_t bytes) {
  const int fd = open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return false;
  is_held_ = posix_fallocate(fd, 0, static_cast<off_t>(bytes)) == 0;
  close(fd);
  if (!is_held_) unlink(path_.c_str());
  return is_held_;
}

void Reserve::GiveBack() {
  if (std::exchange(is_held_, false)) unlink(path_.c_str());
}

}  // namespace aimaster
