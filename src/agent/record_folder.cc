#include "agent/record_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>

#include "agent/limits.h"
#include "agent/private_directory.h"
#include "agent/small_file.h"
#include "core/fnv1a.h"

namespace aimaster::agent {
namespace {

constexpr const char* kInMemory = "/dev/shm";
constexpr const char* kElsewhere = "/tmp";
constexpr const char* kAttemptFile = "attempt";  // the path of the attempt's directory

std::string ParentOfAll() {
  return std::string(access(kInMemory, W_OK | X_OK) == 0 ? kInMemory : kElsewhere) + "/aimaster-records-" +
         std::to_string(geteuid());
}

// In a place where anybody may have put something: nothing is removed but below a folder of ours.
void Remove(const std::string& folder) {
  if (!IsPrivateDirectory(std::filesystem::path(folder).parent_path())) return;
  std::error_code ignored;  // what can't be removed stays; it harms nobody
  std::filesystem::remove_all(folder, ignored);
}

// Of a neighbour, perhaps, who shares this memory and whose directories can't be seen from here.
bool HasLivingWriter(const std::string& folder) {
  const auto names = ListDirectory(folder);
  if (!names) return true;
  return std::ranges::any_of(*names, [&](const std::string& name) {
    const int file = open((folder + "/" + name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) return false;
    struct flock lock = {};
    lock.l_type = F_RDLCK;
    lock.l_whence = SEEK_SET;
    const bool lives = fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    close(file);
    return lives;
  });
}

}  // namespace

std::string RecordFolderOf(const AttemptDirectory& attempt) {
  char name[17];
  std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(Fnv1a(attempt.path())));
  return ParentOfAll() + "/" + name;
}

Status MakeRecordFolder(const AttemptDirectory& attempt) {
  if (const Status made = MakePrivateDirectory(ParentOfAll()); !made) return made;
  const std::string folder = RecordFolderOf(attempt);
  Remove(folder);
  if (const Status made = MakePrivateDirectory(folder); !made) return made;
  const Status written = WriteSmallFile(folder + "/" + kAttemptFile, attempt.path());
  if (!written) Remove(folder);
  return written;
}

void RemoveRecordFolder(const AttemptDirectory& attempt) { Remove(RecordFolderOf(attempt)); }

void SweepRecordFolders() {
  const std::string parent = ParentOfAll();
  const auto names = ListDirectory(parent);
  if (!names) return;
  for (const std::string& name : *names) {
    const std::string folder = parent + "/" + name;
    const std::string file = folder + "/" + kAttemptFile;
    std::error_code error;
    const auto written = std::filesystem::last_write_time(file, error);
    if (error || std::filesystem::file_time_type::clock::now() - written < kNewRecordFolder) continue;
    const auto attempt = ReadSmallFile(file, kSmallFileMaxBytes);
    if (attempt && !FileExists(*attempt) && !HasLivingWriter(folder)) Remove(folder);
  }
}

}  // namespace aimaster::agent
