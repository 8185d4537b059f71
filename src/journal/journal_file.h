// JournalFile: whether the journal is still the file that we opened, and its write-ahead log too. SQLite writes happily
// into files that have been deleted, and over those that were cut short; both would lose the job's history without a
// word.
#pragma once

#include <sys/types.h>

#include <filesystem>

#include "core/error.h"

namespace aimaster {

// Whether something was durable in it once, from what stands beside it.
bool HasRun(const std::filesystem::path& journal);

// One thread.
class JournalFile {
 public:
  explicit JournalFile(std::filesystem::path path) : path_(std::move(path)), log_path_(path_.string() + "-wal") {}

  // As they are now, right after they were opened.
  void Remember();
  // Right after they were written. What was replaced or cut short in this very moment stays to be found so: they never
  // shrink by our own doing.
  void RememberGrown();
  // kEnvironment: it was deleted, replaced or cut short since. Putting the same file back makes it good again.
  Status CheckUnchanged() const;

  // The write-ahead log, where there was one. kShorter may also be somebody else's checkpoint, which loses nothing.
  enum class Log { kAsItWas, kShorter, kGone };
  Log LookAtLog() const;
  const std::filesystem::path& log_path() const { return log_path_; }

 private:
  struct Seen {
    dev_t device = 0;
    ino_t inode = 0;
    off_t size = 0;
  };
  static void Look(const std::filesystem::path& path, Seen& seen);
  static void LookForGrowth(const std::filesystem::path& path, Seen& seen);

  std::filesystem::path path_, log_path_;
  Seen journal_, log_;
};

}  // namespace aimaster
