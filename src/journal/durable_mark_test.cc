// A journal from which something was taken: noticed by what was written down beside it.
#include "journal/durable_mark.h"

#include "journal/job_directory.h"
#include "journal/job_reader.h"
#include "journal/journal_harness.h"

namespace aimaster {
namespace {

namespace fs = std::filesystem;

TEST(DurableMarkTest, TheNextProcessReadsWhatWasWritten) {
  const TemporaryDirectory directory;
  EXPECT_EQ(DurableMark(directory / "mark").Read(), Durable{});
  DurableMark(directory / "mark").Write({Epoch{3}, 57});
  EXPECT_EQ(DurableMark(directory / "mark").Read(), (Durable{Epoch{3}, 57}));
}

TEST(DurableMarkTest, AHalfWrittenOneIsNone) {
  const TemporaryDirectory directory;
  DurableMark(directory / "mark").Write({Epoch{3}, 57});
  std::fstream(directory / "mark", std::ios::in | std::ios::out | std::ios::binary).seekp(16) << "x";
  EXPECT_EQ(DurableMark(directory / "mark").Read(), Durable{});
}

TEST(DurableMarkTest, WithoutAFileNothingIsKnown) {
  DurableMark mark("/nowhere/mark");
  mark.Write({Epoch{3}, 57});
  EXPECT_EQ(mark.Read(), Durable{});
}

class LostJournal : public testing::Test {
 protected:
  // Two masters lived, the second of which wrote the story; both were killed, so that the log keeps what they wrote.
  LostJournal() {
    EXPECT_EQ(InChildProcess([&]() -> std::string {
                Open();
                Journal* second = new Journal(Open());
                if (!second->Append(story_.batch, story_.engine.job())) return "no story";
                _exit(0);
              }),
              "");
  }
  Journal Open() const { return std::move(*Journal::OpenOrCreate(path(), "rules", JournalStorage::kWriteAhead)); }
  fs::path path() const { return directory_ / "journal.db"; }
  fs::path log() const { return path().string() + "-wal"; }

  const TemporaryDirectory directory_;
  Played story_ = Play(RestartedJob().inputs);
};

TEST_F(LostJournal, AWholeOneIsToldFromOne) {
  const Journal journal = Open();
  EXPECT_EQ(journal.loss(), "");
  EXPECT_EQ(journal.epoch(), Epoch{3});
}

TEST_F(LostJournal, OneWhoseLogWasRemovedSaysSoAndKeepsTheEpochsGoing) {
  fs::remove(log());
  const std::string inputs = std::to_string(story_.batch.size());
  for (uint64_t life = 3; life < 5; ++life) {  // and the next master does not take the loss for the truth
    const Journal journal = Open();
    EXPECT_EQ(journal.epoch(), Epoch{life});
    EXPECT_NE(journal.loss().find("ends with input 0, though " + inputs + " were durable"), std::string::npos)
        << journal.loss();
  }
}

TEST_F(LostJournal, OneWhoseLogWasCutShortSaysSo) {
  fs::resize_file(log(), fs::file_size(log()) / 2);
  const Journal journal = Open();
  EXPECT_EQ(journal.epoch(), Epoch{3});
  EXPECT_NE(journal.loss(), "");
}

TEST_F(LostJournal, AnOlderCopyInItsPlaceSaysSo) {
  fs::remove_all(directory_ / "copy");
  fs::create_directory(directory_ / "copy");
  for (const char* name : {"journal.db", "journal.db-wal"})
    fs::copy_file(directory_ / name, directory_ / "copy" / name);
  {
    Journal journal = Open();
    EXPECT_TRUE(journal.Append({{Input{{}, Tick{}}, {}}}, story_.engine.job()));
  }
  for (const char* name : {"journal.db", "journal.db-wal"}) {
    fs::copy_file(directory_ / "copy" / name, directory_ / name, fs::copy_options::overwrite_existing);
  }
  const Journal journal = Open();
  EXPECT_EQ(journal.epoch(), Epoch{4});
  EXPECT_NE(journal.loss().find("an older copy was restored"), std::string::npos) << journal.loss();
}

TEST_F(LostJournal, PutBackItIsWholeAgain) {
  fs::rename(log(), directory_ / "kept");
  EXPECT_NE(Open().loss(), "");
  fs::remove(path().string() + "-wal");
  fs::rename(directory_ / "kept", log());
  EXPECT_EQ(Open().epoch(), Epoch{4});
}

TEST_F(LostJournal, FromTheFirstAppendOnItCountsAsItIs) {
  fs::remove(log());
  {
    Journal journal = Open();
    EXPECT_TRUE(journal.Append(story_.batch, story_.engine.job()));
  }
  EXPECT_EQ(Open().loss(), "");
}

TEST_F(LostJournal, WithoutAMarkTheMastersAddressKnowsTheEpochs) {
  fs::remove(directory_ / "durable_mark");
  fs::remove(log());
  fs::permissions(directory_.path(), fs::perms::owner_all);
  std::ofstream(directory_ / "spec.json") << "{}";
  std::ofstream(directory_ / "master.json")
      << R"({"host":"127.0.0.1","port":1,"pid":1,"start_ticks":1,"epoch":7,"boot_id":"","node":"","tls_fingerprint":""})";
  EXPECT_EQ(Open().epoch(), Epoch{8});
}

TEST_F(LostJournal, WithoutAMarkTheMastersAddressSaysThatThereWasOne) {
  std::ofstream(directory_ / "master.json") << "{}";
  for (const bool emptied : {false, true}) {
    for (const char* name : {"journal.db", "journal.db-wal", "durable_mark"}) fs::remove(directory_ / name);
    if (emptied) std::ofstream(path()).close();
    EXPECT_NE(Open().loss().find("ends with input 0, though a master of this job has run before"), std::string::npos);
  }
}

// Nothing else is left that could tell it from a whole one.
TEST_F(LostJournal, WithoutAMarkTheAttemptsOnDiskSayThatThereWasMore) {
  fs::remove(directory_ / "durable_mark");
  const std::string worker = story_.engine.job().instances[2].name;
  const uint32_t last = Value(story_.engine.job().instances[2].attempt);
  fs::create_directories(directory_ / "nodes/node-1" / worker / std::to_string(last));
  EXPECT_EQ(Open().loss(), "");
  fs::remove(directory_ / "durable_mark");
  fs::create_directories(directory_ / "nodes/node-1" / worker / std::to_string(last + 1));
  const Journal journal = Open();
  EXPECT_NE(journal.loss().find("an attempt was started that it does not know"), std::string::npos) << journal.loss();
  EXPECT_NE(journal.loss().find(worker + "/" + std::to_string(last + 1)), std::string::npos) << journal.loss();
}

TEST_F(LostJournal, OneThatIsGoneIsNoNewJobEither) {
  for (const bool emptied : {false, true}) {
    for (const char* name : {"journal.db", "journal.db-wal"}) fs::remove(directory_ / name);
    if (emptied) std::ofstream(path()).close();
    const Journal journal = Open();
    EXPECT_NE(journal.loss().find("ends with input 0"), std::string::npos) << journal.loss();
    EXPECT_EQ(journal.epoch(), emptied ? Epoch{4} : Epoch{3});
  }
}

TEST_F(LostJournal, AReaderSaysThatThereWasOne) {
  fs::permissions(directory_.path(), fs::perms::owner_all);
  std::ofstream(directory_ / "spec.json") << "{}";
  const Result<JobDirectory> job = JobDirectory::Open(directory_.path());
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_TRUE(JobReader::Open(*job));
  for (const char* name : {"journal.db", "journal.db-wal"}) fs::remove(directory_ / name);
  const Result<JobReader> reader = JobReader::Open(*job);
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().kind, ErrorKind::kEnvironment);
  EXPECT_NE(reader.error().message.find("has run, but its journal"), std::string::npos) << reader.error().message;
}

TEST_F(LostJournal, AReaderThatIsOpenHearsThatItsLogIsAnotherOne) {
  fs::permissions(directory_.path(), fs::perms::owner_all);
  std::ofstream(directory_ / "spec.json") << "{}";
  Journal journal = Open();
  Result<JobReader> reader = JobReader::Open(*JobDirectory::Open(directory_.path()));
  ASSERT_TRUE(reader);
  EXPECT_TRUE(reader->DataVersion());
  fs::remove(log());
  EXPECT_FALSE(reader->DataVersion());
}

TEST_F(LostJournal, AStopByAPersonDoesNotWaitForAJournalThatIsGone) {
  Journal journal = Open();
  EngineHarness job = RestartedJob();
  ASSERT_TRUE(journal.Append(story_.batch, job.engine.job()));
  fs::rename(path(), directory_ / "elsewhere");
  ASSERT_FALSE(journal.Append({{Input{{}, Tick{}}, {}}}, job.engine.job()));
  EXPECT_FALSE(journal.is_broken()) << "it may be put back";
  job.Feed(StopRequested{.at_once = false, .by = "SIGINT"});
  ASSERT_FALSE(journal.Append({{Input{{}, Tick{}}, {}}}, job.engine.job()));
  EXPECT_TRUE(journal.is_broken());
}

// ---- while the master lives ----

TEST_F(LostJournal, ALogThatIsRemovedUnderAMasterIsSavedAndTheNextMasterMissesNothing) {
  std::optional<Journal> journal(Open());
  ASSERT_TRUE(journal->Append({{Input{{}, Tick{}}, {}}}, story_.engine.job()));
  fs::remove(log());
  const Status appended = journal->Append({{Input{{}, Tick{}}, {}}}, story_.engine.job());
  ASSERT_FALSE(appended);
  EXPECT_NE(appended.error().message.find("all that it held has been saved"), std::string::npos);
  EXPECT_TRUE(journal->is_broken());
  journal.reset();
  Journal next = Open();
  EXPECT_EQ(next.loss(), "");
  EXPECT_EQ(next.LoadInputs()->size(), story_.batch.size() + 1);
}

TEST_F(LostJournal, ALogThatIsCutShortUnderAMasterIsNoticedAndNothingIsMadeWorse) {
  std::optional<Journal> journal(Open());
  ASSERT_TRUE(journal->Append({{Input{{}, Tick{}}, {}}}, story_.engine.job()));
  fs::resize_file(log(), fs::file_size(log()) / 2);
  const Status appended = journal->Append({{Input{{}, Tick{}}, {}}}, story_.engine.job());
  ASSERT_FALSE(appended);
  EXPECT_NE(appended.error().message.find("was cut short"), std::string::npos) << appended.error().message;
  EXPECT_TRUE(journal->is_broken());
  journal.reset();
  EXPECT_NE(Open().loss(), "");
  EXPECT_EQ(Sql(path(), "PRAGMA integrity_check"), "ok\n");
}

TEST_F(LostJournal, ACheckpointBySomebodyElseIsNoDamage) {
  Journal journal = Open();
  ASSERT_TRUE(journal.Append({{Input{{}, Tick{}}, {}}}, story_.engine.job()));
  Sql(path(), "PRAGMA wal_checkpoint(TRUNCATE)");
  EXPECT_EQ(fs::file_size(log()), 0u);
  EXPECT_TRUE(journal.Append({{Input{{}, Tick{}}, {}}}, story_.engine.job()));
  EXPECT_EQ(journal.LoadInputs()->size(), story_.batch.size() + 2);
}

TEST_F(LostJournal, AMasterThatWakesUpBesideANewLogWritesNothing) {
  Journal former = Open();
  fs::remove(log());
  DurableMark(directory_ / "durable_mark").Write({Epoch{4}, 1});  // the successor's, whose log the former can't see
  const Status appended = former.Append({{Input{{}, Tick{}}, {}}}, story_.engine.job());
  ASSERT_FALSE(appended);
  EXPECT_EQ(appended.error().kind, ErrorKind::kFenced);
}

}  // namespace
}  // namespace aimaster
