// Any bytes as the file of a journal: an error, or a job that is read, recovered and replayed. Never a crash, a hang or
// an allocation that the file's size does not explain.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/check.h"
#include "journal/job_reader.h"
#include "journal/recovery.h"

namespace aimaster {
namespace {

// In memory where there is a place for it: a fuzzer that waits for a disk finds little.
class Place {
 public:
  Place() {
    std::string pattern = std::filesystem::exists("/dev/shm") ? "/dev/shm/journal-XXXXXX" : "/tmp/journal-XXXXXX";
    CHECK(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~Place() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

JobSpec SmallSpec() {
  JobSpec spec;
  spec.id = *JobId::Parse("dlc0123456789abc");
  spec.roles = {{Role::kWorker, 2, 1}};
  spec.command = {"train"};
  return spec;
}

template <typename T>
void Expect(const Result<T>& result) {
  CHECK(result || !result.error().message.empty());
}

void Read(const JobDirectory& directory) {
  Result<JobReader> reader = JobReader::Open(directory);
  Expect(reader);
  if (!reader) return;
  Expect(reader->ReadSummary());
  Expect(reader->ReadSnapshot());
  Expect(reader->ReadDecisions());
  Expect(reader->ReadEventsAfter(0));
  Expect(reader->Replay({}));
  Expect(reader->Replay({.parameters = FaultToleranceParameters{}}));
}

void TakeOver(const JobDirectory& directory) {
  Result<Journal> journal = Journal::OpenOrCreate(directory.journal(), "rules", JournalStorage::kRollback);
  Expect(journal);
  if (!journal) return;
  CrashMark mark(directory.path() / "crash_mark");
  Result<Recovered> recovered = RecoverJob(*journal, mark);
  Expect(recovered);
  if (!recovered) return;
  // It goes on, whatever was recovered.
  const Moment now = recovered->last.value_or(Moment{});
  JournalBatch batch;
  for (const Event& event :
       {Event(MasterStarted{journal->epoch()}), Event(Tick{}), Event(StopRequested{true, "test"})}) {
    batch.push_back({Input{now, event}, recovered->engine.Step({now, event})});
  }
  const Status appended = journal->Append(batch, recovered->engine.job());
  CHECK(appended || !appended.error().message.empty());
}

}  // namespace
}  // namespace aimaster

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace aimaster;
  static const Place place;
  static const JobDirectory directory = *JobDirectory::Create(Home(place.path()), SmallSpec());
  std::ofstream(directory.journal(), std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  Read(directory);
  TakeOver(directory);
  for (const char* name : {"journal.db-wal", "journal.db-shm", "journal.db-journal", "reserve", "crash_mark"}) {
    unlink((directory.path() / name).c_str());
  }
  return 0;
}
