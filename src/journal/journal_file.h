// JournalFile: whether the journal is still the file that we opened. SQLite writes happily into a file that has been
// deleted, and over one that was cut short; both would lose the job's history without a word.
#pragma once

#include <sys/types.h>

#include <filesystem>

#include "core/error.h"

namespace aimaster {

// An empty journal is begun for a new job alone. One whose master has run before (master.json is there) has a history,
// and where its journal is gone, starting from nothing would start everything twice.
Status RefuseLostJournal(const std::filesystem::path& journal);

// One thread.
class JournalFile {
 public:
  explicit JournalFile(std::filesystem::path path) : path_(std::move(path)) {}

  // As it is now, right after it was opened or written. It never shrinks by our own doing.
  void Remember();
  // kEnvironment: it was deleted, replaced or cut short since. Putting the same file back makes it good again.
  Status CheckUnchanged() const;

 private:
  std::filesystem::path path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  off_t size_ = 0;
};

}  // namespace aimaster
