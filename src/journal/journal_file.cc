#include "journal/journal_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace aimaster {
namespace {

std::unexpected<Error> Tampered(const std::filesystem::path& path, const std::string& what) {
  return Fail(
      ErrorKind::kEnvironment,
      path.string() + " " + what +
          " while the job runs; training goes on, but nothing is decided any more: put the file back as it was, "
          "or stop the job and submit it anew");
}

}  // namespace

Status RefuseLostJournal(const std::filesystem::path& journal) {
  struct stat file{};
  const bool empty = stat(journal.c_str(), &file) != 0 ? errno == ENOENT : S_ISREG(file.st_mode) && file.st_size == 0;
  if (!empty || access((journal.parent_path() / "master.json").c_str(), F_OK) != 0) return {};
  return Fail(ErrorKind::kEnvironment,
              journal.string() +
                  " is gone or empty, though the job has run before; restore it from a copy, or submit the job anew "
                  "(what still runs of it stops by itself after --orphan-timeout)");
}

void JournalFile::Remember() {
  struct stat file{};
  if (stat(path_.c_str(), &file) != 0) return;
  device_ = file.st_dev;
  inode_ = file.st_ino;
  size_ = file.st_size;
}

Status JournalFile::CheckUnchanged() const {
  struct stat file{};
  if (stat(path_.c_str(), &file) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return Tampered(path_, "was deleted");
    return Fail(ErrorKind::kEnvironment, path_.string() + ": " + std::strerror(errno));
  }
  if (file.st_dev != device_ || file.st_ino != inode_) return Tampered(path_, "was replaced");
  if (file.st_size < size_) return Tampered(path_, "was cut short");
  return {};
}

}  // namespace aimaster
