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

bool HasMark(const std::filesystem::path& journal) {
  struct stat file{};
  return stat((journal.parent_path() / "durable_mark").c_str(), &file) == 0 && file.st_size > 0;
}

}  // namespace

bool HasRun(const std::filesystem::path& journal) {
  return HasMark(journal) || access((journal.parent_path() / "master.json").c_str(), F_OK) == 0;
}

void JournalFile::Look(const std::filesystem::path& path, Seen& seen) {
  struct stat file{};
  if (stat(path.c_str(), &file) == 0) seen = {file.st_dev, file.st_ino, file.st_size};
}

void JournalFile::Remember() {
  Look(path_, journal_);
  Look(log_path_, log_);
}

void JournalFile::LookForGrowth(const std::filesystem::path& path, Seen& seen) {
  Seen now;
  Look(path, now);
  const bool same = now.device == seen.device && now.inode == seen.inode;
  if (seen.inode == 0 || (same && now.size > seen.size)) seen = now;
}

void JournalFile::RememberGrown() {
  LookForGrowth(path_, journal_);
  LookForGrowth(log_path_, log_);
}

Status JournalFile::CheckUnchanged() const {
  struct stat file{};
  if (stat(path_.c_str(), &file) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return Tampered(path_, "was deleted");
    return Fail(ErrorKind::kEnvironment, path_.string() + ": " + std::strerror(errno));
  }
  if (file.st_dev != journal_.device || file.st_ino != journal_.inode) return Tampered(path_, "was replaced");
  if (file.st_size < journal_.size) return Tampered(path_, "was cut short");
  return {};
}

JournalFile::Log JournalFile::LookAtLog() const {
  struct stat file{};
  if (log_.inode == 0) return Log::kAsItWas;
  if (stat(log_path_.c_str(), &file) != 0) return errno == ENOENT ? Log::kGone : Log::kAsItWas;
  if (file.st_dev != log_.device || file.st_ino != log_.inode) return Log::kGone;
  return file.st_size < log_.size ? Log::kShorter : Log::kAsItWas;
}

}  // namespace aimaster
