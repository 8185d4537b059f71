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

constexpr size_t kEnvironmentOfRankMaxBytes = 8 << 20;

bool HasEntry(std::string_view environment, std::string_view entry) {
  while (!environment.empty()) {
    const size_t end = std::min(environment.find('\0'), environment.size());
    if (environment.substr(0, end) == entry) return true;
    environment.remove_prefix(std::min(end + 1, environment.size()));
  }
  return false;
}

// The file as it is at one moment; empty: it can't be read, or is none of ours.
std::span<const std::byte> CopyFile(const std::string& path, std::vector<std::byte>& buffer) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return {};
  struct stat status = {};
  size_t size = 0;
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() && status.st_size > 0 &&
      static_cast<size_t>(status.st_size) <= c4d::kRecordBytesMax) {
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
  return got == size ? std::span<const std::byte>(buffer).first(size) : std::span<const std::byte>();
}

// Of the process that writes into the folder: in another space of numbers its number may be somebody else's.
c4d::Hold HoldOf(uint64_t number, const std::string& folder) {
  const auto pid = static_cast<pid_t>(number);
  const auto environment = ReadWhole("/proc/" + std::to_string(pid) + "/environ", kEnvironmentOfRankMaxBytes);
  const std::string written = std::string(AIMASTER_RECORD_FOLDER "=") + folder;
  if (!environment || !HasEntry(*environment, written)) return c4d::Hold::kFree;
  const std::optional<ProcessStat> stat = ReadStat(pid);
  if (!stat) return c4d::Hold::kFree;
  if (stat->state == 'T' || stat->state == 't') return c4d::Hold::kStopped;
  return stat->state == 'D' ? c4d::Hold::kKernel : c4d::Hold::kFree;
}

}  // namespace

void RecordWatch::Add(AttemptKey key, const AttemptDirectory& directory) {
  const std::string folder = RecordFolderOf(directory);
  if (access(folder.c_str(), R_OK | X_OK) == 0) folders_[key] = folder;
}

void RecordWatch::ReadFolder(AttemptKey key, const std::string& folder, std::vector<Reading>& readings) {
  const auto names = ListDirectory(folder);
  if (!names) return;
  for (const std::string& name : *names) {
    if (!name.ends_with(AIMASTER_RECORD_SUFFIX)) continue;
    if (readings.size() >= kRecordsMax) return;
    const std::span<const std::byte> bytes = CopyFile(folder + "/" + name, buffer_);
    Result<c4d::Record> record = c4d::ReadRecord(bytes, MonotonicNow());
    if (!record || record->is_finished || !record->world_rank || record->world_size > c4d::kRecordRanksMax) continue;
    readings.push_back({key, folder, std::move(*record)});
  }
}

std::vector<RecordWatch::Reading> RecordWatch::Read() {
  std::vector<Reading> readings;
  for (const auto& [key, folder] : folders_) ReadFolder(key, folder, readings);
  return readings;
}

std::optional<v1::Communication> RecordWatch::Summary() {
  if (folders_.empty()) return std::nullopt;
  std::vector<c4d::RankRecord> records;
  uint32_t ranks = 0;
  for (Reading& reading : Read()) {
    const Rank rank = *reading.record.world_rank;
    ranks = std::max({ranks, reading.record.world_size, Value(rank) + 1});
    records.push_back({.rank = rank, .record = std::move(reading.record)});
  }
  v1::Communication summary;
  summary.set_processes(static_cast<uint32_t>(records.size()));
  std::optional<Duration> longest;
  for (const c4d::Operation& operation : c4d::ObserveRecords(records, ranks).observation.operations) {
    longest = std::max(longest.value_or(operation.age), operation.age);
  }
  if (longest && *longest != c4d::kNoAge) summary.set_longest_wait_ns(longest->count());
  return summary;
}

std::vector<v1::Records> RecordWatch::ReadAll(uint64_t number) {
  std::vector<v1::Records> answers(1);
  size_t bytes = 0;
  for (const Reading& reading : Read()) {
    v1::ProcessRecord process = ToMessage(reading.record);
    process.set_hold(static_cast<uint32_t>(HoldOf(reading.record.pid, reading.folder)));
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
  for (v1::Records& answer : answers) answer.set_number(number);
  return answers;
}

}  // namespace aimaster::agent
