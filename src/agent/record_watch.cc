#include "agent/record_watch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <span>

#include "agent/limits.h"
#include "agent/process_identity.h"
#include "agent/record_folder.h"
#include "agent/small_file.h"
#include "core/clocks.h"
#include "probe/record.h"
#include "wire/record_message.h"

namespace aimaster::agent {
namespace {

struct FileCopy {
  pid_t writer = 0;  // 0: it can't be seen from here
  std::span<const std::byte> bytes;
};

// As it is at one moment; none: it can't be read, is none of ours, or its process is gone.
std::optional<FileCopy> CopyFile(const std::string& path, std::vector<std::byte>& buffer) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return std::nullopt;
  struct stat status = {};
  size_t size = 0;
  struct flock lock = {};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  const bool lives = fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  if (lives && fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
      status.st_size > 0 && static_cast<size_t>(status.st_size) <= c4d::kRecordBytesMax) {
    size = static_cast<size_t>(status.st_size);
  }
  buffer.resize(std::max(buffer.size(), size));
  size_t got = 0;
  while (got < size) {
    const ssize_t read = pread(file, buffer.data() + got, size - got, static_cast<off_t>(got));
    if (read <= 0) break;
    got += static_cast<size_t>(read);
  }
  close(file);
  if (size == 0 || got < size) return std::nullopt;
  return FileCopy{std::max<pid_t>(lock.l_pid, 0), std::span<const std::byte>(buffer).first(size)};
}

}  // namespace

void RecordWatch::Add(AttemptKey key, const AttemptDirectory& directory) {
  const std::string folder = RecordFolderOf(directory);
  if (access(folder.c_str(), R_OK | X_OK) == 0) folders_[key] = folder;
}

void RecordWatch::ReadFolder(AttemptKey key, const std::string& folder, std::vector<Reading>& readings) {
  const auto names = ListDirectory(folder);
  if (!names) return;
  size_t looked_at = 0;
  for (const std::string& name : *names) {
    if (!name.ends_with(AIMASTER_RECORD_SUFFIX)) continue;
    if (++looked_at > kRecordsMax) return;
    const std::optional<FileCopy> copy = CopyFile(folder + "/" + name, buffer_);
    if (!copy) continue;
    Result<c4d::Record> record = c4d::ReadRecord(copy->bytes, MonotonicNow());
    if (!record || !record->world_rank || Value(*record->world_rank) >= c4d::kRecordRanksMax) continue;
    readings.push_back({key, copy->writer, std::move(*record)});
  }
}

std::vector<RecordWatch::Reading> RecordWatch::Read() {
  std::vector<Reading> readings;
  for (const auto& [key, folder] : folders_) ReadFolder(key, folder, readings);
  return readings;
}

std::optional<v1::Communication> RecordWatch::Summary() {
  if (folders_.empty()) return std::nullopt;
  v1::Communication summary;
  std::optional<Duration> longest;
  for (const Reading& reading : Read()) {
    summary.set_processes(summary.processes() + 1);
    if (reading.record.is_finished) continue;
    if (const std::optional<Duration> wait = c4d::LongestWait(reading.record)) longest = std::max(longest, wait);
    finished_.Read(reading.key, reading.record, summary);
  }
  finished_.ForgetOthers();
  if (longest) summary.set_longest_wait_ns(longest->count());
  return summary;
}

// Who is being looked at by a debugger, or by a tool that takes stacks, is none to blame. In the kernel processes are
// for a moment again and again.
c4d::Hold RecordWatch::HoldOf(pid_t pid) {
  const std::optional<ProcessStat> stat = pid > 0 ? ReadStat(pid) : std::nullopt;
  const char state = stat ? stat->state : 'S';
  if (state != 'D') in_kernel_since_.erase(pid);
  if (state == 'T') return c4d::Hold::kStopped;
  if (state != 'D') return c4d::Hold::kFree;
  const Monotonic now = MonotonicNow();
  const Monotonic since = in_kernel_since_.try_emplace(pid, now).first->second;
  return now - since >= kStuckInKernel ? c4d::Hold::kKernel : c4d::Hold::kFree;
}

std::vector<v1::Records> RecordWatch::ReadAll(uint64_t number) {
  std::vector<v1::Records> answers(1);
  size_t bytes = 0;
  for (const Reading& reading : Read()) {
    if (reading.record.is_finished) continue;
    v1::ProcessRecord process = ToMessage(reading.record);
    process.set_hold(static_cast<uint32_t>(HoldOf(reading.pid)));
    process.mutable_id()->set_instance(reading.key.instance);
    process.mutable_id()->set_attempt(reading.key.attempt);
    if (bytes > kRecordsMessageBytes) {
      answers.back().set_more_follow(true);
      answers.emplace_back();
      bytes = 0;
    }
    bytes += process.ByteSizeLong();
    *answers.back().add_processes() = std::move(process);
  }
  if (in_kernel_since_.size() > kRecordsMax) in_kernel_since_.clear();
  for (v1::Records& answer : answers) answer.set_number(number);
  return answers;
}

}  // namespace aimaster::agent
