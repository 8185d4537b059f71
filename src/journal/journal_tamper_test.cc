// What people, disks and other masters do to a journal while its job runs: noticed, said, and never a silent new
// beginning.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <atomic>
#include <barrier>
#include <cstring>
#include <thread>

#include "journal/job_reader.h"
#include "journal/journal_file.h"
#include "journal/journal_harness.h"
#include "journal/reserve.h"

namespace aimaster {
namespace {

namespace fs = std::filesystem;

class TamperedJournal : public testing::TestWithParam<JournalStorage> {
 protected:
  TamperedJournal() : journal_(*Journal::OpenOrCreate(path(), "rules", GetParam())) {
    EXPECT_TRUE(journal_.Append(story_.batch, story_.engine.job()));
  }
  Status AppendAgain() { return journal_.Append({{Input{{}, Tick{}}, {}}}, story_.engine.job()); }
  void ExpectRefusal(const std::string& what) {
    const Status appended = AppendAgain();
    ASSERT_FALSE(appended);
    EXPECT_EQ(appended.error().kind, ErrorKind::kEnvironment);
    EXPECT_NE(appended.error().message.find(what), std::string::npos) << appended.error().message;
  }
  fs::path path() const { return directory_ / "journal.db"; }

  const TemporaryDirectory directory_;
  Played story_ = Play(RestartedJob().inputs);
  Journal journal_;
};

TEST_P(TamperedJournal, ADeletedOneIsMissedAndTakenBackAsItWas) {
  fs::rename(path(), directory_ / "elsewhere");
  ExpectRefusal("was deleted");
  fs::rename(directory_ / "elsewhere", path());
  EXPECT_TRUE(AppendAgain());
}

TEST_P(TamperedJournal, AnotherFileInItsPlaceIsNoJournal) {
  fs::rename(path(), directory_ / "elsewhere");
  fs::copy_file(directory_ / "elsewhere", path());
  ExpectRefusal("was replaced");
}

TEST_P(TamperedJournal, OneThatWasCutShortIsLeftAsItIs) {
  fs::resize_file(path(), fs::file_size(path()) / 2);
  const std::string before = BytesOf(path());
  ExpectRefusal("was cut short");
  EXPECT_EQ(BytesOf(path()), before);
}

// A commit is durable, and before its size is known somebody is faster.
TEST(JournalFileTest, WhatIsCutShortInTheMomentOfAWriteIsFoundSo) {
  const TemporaryDirectory directory;
  const fs::path journal = directory / "journal.db", log = directory / "journal.db-wal";
  std::ofstream(journal) << std::string(100, 'j');
  std::ofstream(log) << std::string(100, 'l');
  JournalFile file(journal);
  file.Remember();
  fs::resize_file(journal, 200), fs::resize_file(log, 200);
  file.RememberGrown();
  EXPECT_TRUE(file.CheckUnchanged());
  EXPECT_EQ(file.LookAtLog(), JournalFile::Log::kAsItWas);
  fs::resize_file(journal, 150), fs::resize_file(log, 150);
  file.RememberGrown();
  EXPECT_FALSE(file.CheckUnchanged());
  EXPECT_EQ(file.LookAtLog(), JournalFile::Log::kShorter);
  fs::copy_file(log, directory / "other");
  fs::rename(directory / "other", log);
  file.RememberGrown();
  EXPECT_EQ(file.LookAtLog(), JournalFile::Log::kGone);
}

TEST_P(TamperedJournal, GarbageIsNoJournal) {
  Sql(path(), "PRAGMA wal_checkpoint(TRUNCATE)");  // else the log knows better
  std::fstream(path(), std::ios::in | std::ios::out | std::ios::binary) << std::string(4096, 'x') << std::flush;
  const Result<Journal> successor = Journal::OpenOrCreate(path(), "rules", GetParam());
  ASSERT_FALSE(successor);
  EXPECT_NE(successor.error().message.find("restore it from a copy"), std::string::npos) << successor.error().message;
}

INSTANTIATE_TEST_SUITE_P(Storages, TamperedJournal,
                         testing::Values(JournalStorage::kWriteAhead, JournalStorage::kRollback));

std::string MountOurOwn(const fs::path& where, const char* options) {
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("tmpfs", where.c_str(), "tmpfs", 0, options) != 0) {
    return std::string("skip: no tmpfs of our own: ") + std::strerror(errno);
  }
  return "";
}

class StarvedJournal : public testing::TestWithParam<JournalStorage> {
 protected:
  void Tell(const std::function<std::string(const fs::path&)>& story, const char* options) {
    const TemporaryDirectory directory;
    const std::string wrong = InChildProcess([&]() -> std::string {
      if (std::string no = MountOurOwn(directory.path(), options); !no.empty()) return no;
      return story(directory.path());
    });
    if (wrong.starts_with("skip")) GTEST_SKIP() << wrong;
    EXPECT_EQ(wrong, "");
  }
};

void FillUp(const fs::path& file) {
  std::ofstream ballast(file, std::ios::binary);
  const std::string kilobyte(1024, 'b');
  while (ballast.write(kilobyte.data(), 1024).flush()) {
  }
}

TEST_P(StarvedJournal, TheEndOfAJobFitsIntoItsReserveAndNothingElseDoes) {
  Tell(
      [](const fs::path& place) -> std::string {
        Journal journal = std::move(*Journal::OpenOrCreate(place / "journal.db", "rules", GetParam()));
        EngineHarness job = RestartedJob();
        Played story = Play(job.inputs);
        if (!journal.Append(story.batch, story.engine.job())) return "no start";
        if (!fs::exists(place / "reserve")) return "nothing reserved";
        FillUp(place / "ballast");
        const auto append = [&](Event event) {
          const Input input{job.now, std::move(event)};
          const StepResult result = story.engine.Step(input);
          return journal.Append({{input, result}}, story.engine.job());
        };
        Status failed;
        for (int i = 0; i < 200 && failed; ++i) failed = append(NodeLost{NodeIndex{50u}, std::string(8000, 'x')});
        if (failed || failed.error().kind != ErrorKind::kDiskFull) return "it never was full";
        if (!fs::exists(place / "reserve")) return "the reserve was given away for nothing";
        if (const Status stop = append(StopRequested{true, "test"}); !stop) return "no stop: " + stop.error().message;
        for (uint32_t i = 0; i < 4; ++i) {
          const Attempt attempt = story.engine.job().instances[i].attempt;
          if (const Status end = append(InstanceEnded{InstanceIndex{i}, attempt}); !end) {
            return "no end: " + end.error().message;
          }
        }
        if (story.engine.job().status != JobStatus::kStopped) return "not ended";
        if (Sql(place / "journal.db", "SELECT json_extract(body, '$.status') FROM job") != "Stopped\n") return "lost";
        return "";
      },
      "size=16m");
}

TEST_P(StarvedJournal, TheReserveIsTakenAgainWhenThereIsRoom) {
  Tell(
      [](const fs::path& place) -> std::string {
        Reserve reserve(place / "reserve");
        if (!reserve.TakeIfThereIsRoom(1 << 20)) return "not taken";
        if (!Reserve(place / "reserve").is_held()) return "a successor does not see it";
        reserve.GiveBack();
        FillUp(place / "ballast");
        if (reserve.TakeIfThereIsRoom(1 << 20) || fs::exists(place / "reserve")) return "taken from those in need";
        fs::remove(place / "ballast");
        return reserve.TakeIfThereIsRoom(1 << 20) ? "" : "not taken again";
      },
      "size=16m");
}

TEST_P(StarvedJournal, AFileSystemThatTurnsReadOnlyStopsNothingForGood) {
  Tell(
      [](const fs::path& place) -> std::string {
        Played story = Play(RestartedJob().inputs);
        Journal journal = std::move(*Journal::OpenOrCreate(place / "journal.db", "rules", GetParam()));
        if (!journal.Append(story.batch, story.engine.job())) return "no start";
        // Files that are open for writing keep it from being remounted; a bind mount over itself does not.
        if (mount(place.c_str(), place.c_str(), nullptr, MS_BIND, nullptr) != 0) return "skip: no bind mount";
        if (mount(nullptr, place.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) != 0) return "skip: no";
        const auto take_over = [&]() -> std::string {
          const Result<Journal> successor = Journal::OpenOrCreate(place / "journal.db", "rules", GetParam());
          return successor ? "" : successor.error().message;
        };
        const std::string refused = InChildProcess(take_over);
        if (refused.find("yours to read and write") == std::string::npos) return "not clear: " + refused;
        umount(place.c_str());
        return InChildProcess(take_over);
      },
      "size=16m");
}

TEST_P(StarvedJournal, WithoutInodesAJournalThatIsOpenGoesOn) {
  Tell(
      [](const fs::path& place) -> std::string {
        Played story = Play(RestartedJob().inputs);
        Journal journal = std::move(*Journal::OpenOrCreate(place / "journal.db", "rules", GetParam()));
        if (!journal.Append(story.batch, story.engine.job())) return "no start";
        for (int i = 0; std::ofstream(place / ("file" + std::to_string(i))); ++i) {
        }
        const Status appended = journal.Append({{Input{{}, Tick{}}, {}}}, story.engine.job());
        if (GetParam() == JournalStorage::kWriteAhead) return appended ? "" : "it stopped: " + appended.error().message;
        if (appended) return "in rollback mode a commit needs an inode";
        if (appended.error().message.find("journal.db") == std::string::npos) return appended.error().message;
        fs::remove(place / "file0");
        return journal.Append({{Input{{}, Tick{}}, {}}}, story.engine.job()) ? "" : "not again";
      },
      "size=16m,nr_inodes=12");
}

INSTANTIATE_TEST_SUITE_P(Storages, StarvedJournal,
                         testing::Values(JournalStorage::kWriteAhead, JournalStorage::kRollback));

// A machine that loses power may keep any part of the last write. Every length is tried of the write-ahead log's last
// commit: it is there, or it is not.
TEST(TornWrite, ACommitThatWasCutAnywhereIsThereOrIsNot) {
  const TemporaryDirectory home("/dev/shm");
  const JobDirectory directory = *JobDirectory::Create(Home(home.path()), EngineHarness().spec);
  const std::string wal = directory.journal().string() + "-wal";
  std::string before, after, database;
  {
    Journal journal = std::move(*Journal::OpenOrCreate(directory.journal(), "rules", JournalStorage::kWriteAhead));
    JobState job;
    job.restarts = 1;
    ASSERT_TRUE(journal.Append({{Input{{}, NodeDenied{"1"}}, {}}}, job));
    before = BytesOf(wal);
    job.restarts = 2;
    ASSERT_TRUE(journal.Append({{Input{{}, NodeDenied{"2"}}, {}}}, job));
    after = BytesOf(wal);
    database = BytesOf(directory.journal());
  }
  ASSERT_GT(after.size(), before.size());
  const size_t step = std::getenv("AIMASTER_TEST_FULL") != nullptr ? 1 : 61;
  int old_states = 0, new_states = 0;
  for (size_t length = before.size(); length <= after.size(); length += after.size() - length < 64 ? 1 : step) {
    std::ofstream(directory.journal(), std::ios::binary | std::ios::trunc) << database;
    std::ofstream(wal, std::ios::binary | std::ios::trunc) << after.substr(0, length);
    fs::remove(directory.journal().string() + "-shm");
    Result<JobReader> reader = JobReader::Open(directory);
    ASSERT_TRUE(reader) << "cut to " << length << ": " << reader.error().message;
    const Result<JobSummary> summary = reader->ReadSummary();
    ASSERT_TRUE(summary) << "cut to " << length << ": " << summary.error().message;
    (summary->restarts == 1 ? old_states : new_states) += 1;
    ASSERT_TRUE(summary->restarts == 1 || summary->restarts == 2);
    ASSERT_EQ(length == after.size(), summary->restarts == 2) << "cut to " << length;
  }
  EXPECT_GT(old_states, 100);
  EXPECT_EQ(new_states, 1);
}

// Two masters who both believe that the job is theirs: whoever came last, and no input of the other after that.
TEST(Fencing, OfTwoMastersThatRaceTheLaterOneWritesAlone) {
  const TemporaryDirectory directory("/dev/shm");
  const fs::path path = directory / "journal.db";
  const int rounds = std::getenv("AIMASTER_TEST_FULL") != nullptr ? 1000 : 200;
  {
    ASSERT_TRUE(Journal::OpenOrCreate(path, "rules"));
  }
  std::atomic<int> wrong = 0, fenced = 0, written = 0;
  std::barrier both(2);
  const auto master = [&](int number) {
    for (int i = 0; i < rounds; ++i) {
      both.arrive_and_wait();
      Result<Journal> journal = Journal::OpenOrCreate(path, "rules");
      both.arrive_and_wait();
      if (!journal) {
        ++wrong;
        continue;
      }
      for (int k = 0; k < 3; ++k) {
        const Status appended = journal->Append({{Input{{}, NodeDenied{std::to_string(number)}}, {}}}, {});
        (appended ? written : appended.error().kind == ErrorKind::kFenced ? fenced : wrong) += 1;
      }
    }
  };
  std::thread one(master, 1), other(master, 2);
  one.join();
  other.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(fenced, 3 * rounds);
  EXPECT_EQ(written, 3 * rounds);
  EXPECT_EQ(Sql(path, "SELECT value FROM meta WHERE key = 'epoch'"), std::to_string(2 * rounds + 1) + "\n");
  EXPECT_EQ(Sql(path, "SELECT count(*) FROM input a JOIN input b ON b.seq = a.seq + 1 AND b.epoch < a.epoch"), "0\n");
  EXPECT_EQ(Sql(path, "SELECT max(seq) - count(*) FROM input"), "0\n");
}

}  // namespace
}  // namespace aimaster
