// A master may be killed between any two instructions. What it had been told is durable must be there, and of what it
// was just writing there must be all or nothing.
#include <signal.h>

#include "journal/job_reader.h"
#include "journal/journal_harness.h"

namespace aimaster {
namespace {

constexpr size_t kInputsPerBatch = 3;

// The n-th batch, and a job whose view says n too.
JournalBatch NthBatch(uint32_t n) {
  JournalBatch batch;
  for (size_t i = 0; i < kInputsPerBatch; ++i) {
    batch.push_back({Input{{}, NodeDenied{std::to_string(n)}}, {.decisions = {{.kind = "Deny"}}}});
  }
  return batch;
}
JobState JobAfter(uint32_t n) {
  JobState job;
  job.restarts = n;
  return job;
}

// Appends until it is killed, and says after each batch that it is durable.
[[noreturn]] void AppendForEver(const std::filesystem::path& path, JournalStorage storage, int said) {
  Result<Journal> journal = Journal::OpenOrCreate(path, "rules", storage);
  for (uint32_t n = 1; journal && journal->Append(NthBatch(n), JobAfter(n)); ++n) {
    if (write(said, "x", 1) != 1) break;
  }
  _exit(1);
}

// Returns how many batches were said to be durable.
uint32_t KillAfter(uint32_t batches, const std::filesystem::path& path, JournalStorage storage) {
  int ends[2];
  if (pipe(ends) != 0) return 0;
  const pid_t master = fork();
  if (master == 0) AppendForEver(path, storage, ends[1]);
  close(ends[1]);
  uint32_t heard = 0;
  char byte = 0;
  while (heard < batches && read(ends[0], &byte, 1) == 1) ++heard;
  kill(master, SIGKILL);
  while (read(ends[0], &byte, 1) == 1) ++heard;
  close(ends[0]);
  int status = 0;
  waitpid(master, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "it ended by itself: " << status;
  return heard;
}

class JournalCrashTest : public testing::TestWithParam<JournalStorage> {};

TEST_P(JournalCrashTest, AKilledMasterLeavesWholeBatchesAndAllThatWereDurable) {
  for (uint32_t round = 1; round <= 15; ++round) {
    const TemporaryDirectory home;
    EngineHarness job;
    Result<JobDirectory> directory = JobDirectory::Create(Home(home.path()), job.spec);
    ASSERT_TRUE(directory);
    const uint32_t durable = KillAfter(round, directory->journal(), GetParam());

    // Readers come first: nobody has repaired anything yet.
    Result<JobReader> reader = JobReader::Open(*directory);
    ASSERT_TRUE(reader) << reader.error().message;
    const Result<JobSummary> seen = reader->ReadSummary();
    ASSERT_TRUE(seen) << seen.error().message;
    EXPECT_GE(seen->restarts, durable);
    EXPECT_EQ(reader->ReadDecisions()->size(), seen->restarts * kInputsPerBatch);

    Result<Journal> successor = Journal::OpenOrCreate(directory->journal(), "rules", GetParam());
    ASSERT_TRUE(successor) << successor.error().message;
    EXPECT_EQ(successor->epoch(), Epoch{2});
    const std::vector<Input> inputs = *successor->LoadInputs();
    ASSERT_EQ(inputs.size(), seen->restarts * kInputsPerBatch) << "the view tells of the same inputs";
    for (size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_EQ(std::get<NodeDenied>(inputs[i].event).reason, std::to_string(i / kInputsPerBatch + 1));
    }
    EXPECT_TRUE(successor->Append(NthBatch(1), JobAfter(1)));
  }
}

INSTANTIATE_TEST_SUITE_P(Storages, JournalCrashTest,
                         testing::Values(JournalStorage::kWriteAhead, JournalStorage::kRollback));

}  // namespace
}  // namespace aimaster
