#include "journal/job_reader.h"

#include <sys/stat.h>

#include <atomic>
#include <thread>

#include "journal/journal_harness.h"

namespace aimaster {
namespace {

class JobReaderTest : public testing::Test {
 protected:
  JobDirectory Create(const JobSpec& spec) { return *JobDirectory::Create(home_, spec); }
  static Journal OpenJournal(const JobDirectory& directory, JournalStorage storage = JournalStorage::kByFileSystem) {
    return std::move(*Journal::OpenOrCreate(directory.journal(), "rules", storage));
  }
  // A job with a past, whose master is gone.
  JobDirectory Ended() {
    const EngineHarness job = RestartedJob();
    JobDirectory directory = Create(job.spec);
    const Played played = Play(job.inputs);
    EXPECT_TRUE(OpenJournal(directory).Append(played.batch, played.engine.job()));
    return directory;
  }

  TemporaryDirectory place_;
  const Home home_{place_ / "home"};
};

TEST_F(JobReaderTest, ItTellsWhatTheEngineKnows) {
  const EngineHarness job = RestartedJob();
  const JobDirectory directory = Ended();
  Result<JobReader> reader = JobReader::Open(directory);
  ASSERT_TRUE(reader) << reader.error().message;
  const Result<JobSnapshot> snapshot = reader->ReadSnapshot();
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  EXPECT_EQ(snapshot->summary, Summarize(job.job()));
  EXPECT_EQ(snapshot->instances, job.job().instances);
  EXPECT_EQ(snapshot->nodes, job.job().nodes);
  EXPECT_EQ(snapshot->rounds, job.job().rounds);
  EXPECT_EQ(snapshot->records, job.job().records);

  std::vector<Decision> decisions;
  std::vector<JobEvent> events;
  for (const auto& [input, result] : Play(job.inputs).batch) {
    decisions.insert(decisions.end(), result.decisions.begin(), result.decisions.end());
    events.insert(events.end(), result.events.begin(), result.events.end());
  }
  EXPECT_EQ(*reader->ReadDecisions(), decisions);
  const std::vector<NumberedEvent> read = *reader->ReadEventsAfter(0);
  ASSERT_EQ(read.size(), events.size());
  for (size_t i = 0; i < read.size(); ++i) EXPECT_EQ(read[i].event, events[i]);
  EXPECT_EQ(reader->ReadEventsAfter(read[1].number)->size(), events.size() - 2) << "a follower goes on where it was";
}

// A step writes only what it says that it changed; whatever it forgets to say would stay old here for ever.
TEST_F(JobReaderTest, TheViewsAreTheEnginesStateAfterEveryStep) {
  const EngineHarness job = RestartedJob();
  const JobDirectory directory = Create(job.spec);
  Journal journal = OpenJournal(directory);
  JobReader reader = *JobReader::Open(directory);
  Engine engine;
  for (const Input& input : job.inputs) {
    SCOPED_TRACE(EncodeInput(input));
    StepResult result = engine.Step(input);
    ASSERT_TRUE(journal.Append({{input, std::move(result)}}, engine.job()));
    const JobSnapshot snapshot = *reader.ReadSnapshot();
    EXPECT_EQ(snapshot.summary, Summarize(engine.job()));
    EXPECT_EQ(snapshot.instances, engine.job().instances);
    EXPECT_EQ(snapshot.nodes, engine.job().nodes);
    EXPECT_EQ(snapshot.rounds, engine.job().rounds);
    EXPECT_EQ(snapshot.records, engine.job().records);
  }
}

TEST_F(JobReaderTest, AJobWhoseMasterHasNotStartedYetHasNoJournal) {
  const JobDirectory directory = Create(EngineHarness().spec);
  EXPECT_EQ(JobReader::Open(directory).error().kind, ErrorKind::kNotFound);
  std::ofstream(directory.journal()) << "";  // made, and killed before the first commit
  EXPECT_EQ(JobReader::Open(directory).error().kind, ErrorKind::kNotFound);
}

TEST_F(JobReaderTest, AJournalWithoutInputsIsAJobBeingCreated) {
  const JobDirectory directory = Create(EngineHarness().spec);
  const Journal journal = OpenJournal(directory);
  EXPECT_EQ(JobReader::Open(directory)->ReadSummary()->status, JobStatus::kCreating);
}

TEST_F(JobReaderTest, AFollowerSeesThatSomethingWasAppended) {
  for (const JournalStorage storage : {JournalStorage::kWriteAhead, JournalStorage::kRollback}) {
    EngineHarness job;
    job.spec.id = JobId::FromRandom(static_cast<uint64_t>(storage));
    const JobDirectory directory = Create(job.spec);
    Journal journal = OpenJournal(directory, storage);
    JobReader reader = *JobReader::Open(directory);
    const int64_t before = *reader.DataVersion();
    EXPECT_EQ(*reader.DataVersion(), before);
    ASSERT_TRUE(journal.Append({}, {}));
    EXPECT_NE(*reader.DataVersion(), before);
  }
}

// Every append changes three views; a reader in between must never see two of different ages.
TEST_F(JobReaderTest, ASnapshotIsOfOneMomentWhileTheMasterWrites) {
  for (const JournalStorage storage : {JournalStorage::kWriteAhead, JournalStorage::kRollback}) {
    EngineHarness job;
    job.spec.id = JobId::FromRandom(static_cast<uint64_t>(storage));
    const JobDirectory directory = Create(job.spec);
    std::atomic<bool> done = false;
    std::string failed;
    Journal journal = OpenJournal(directory, storage);
    std::thread master([&] {
      for (uint32_t n = 1; n <= 60 && failed.empty(); ++n) {
        JobState state;
        state.restarts = n;
        state.instances = {{.name = "i", .starts = n}};
        state.nodes[NodeIndex{0}].name = std::to_string(n);
        const Status appended = journal.Append({{Input{}, {.changed_instances = {InstanceIndex{0}}}}}, state);
        if (!appended) failed = appended.error().message;
      }
      done = true;
    });
    JobReader reader = *JobReader::Open(directory);
    uint32_t seen = 0;
    while (!done) {
      const Result<JobSnapshot> snapshot = reader.ReadSnapshot();
      if (!snapshot) {
        ADD_FAILURE() << snapshot.error().message;
        break;
      }
      const uint32_t n = snapshot->summary.restarts;
      EXPECT_GE(n, seen);
      seen = n;
      if (n == 0) continue;
      EXPECT_EQ(snapshot->instances.at(0).starts, n);
      EXPECT_EQ(snapshot->nodes.at(NodeIndex{0}).name, std::to_string(n));
    }
    master.join();
    EXPECT_EQ(failed, "");
    EXPECT_EQ(reader.ReadSnapshot()->summary.restarts, 60u);
  }
}

TEST_F(JobReaderTest, ANewerJournalIsRefused) {
  const JobDirectory directory = Ended();
  Sql(directory.journal(), "PRAGMA user_version = 99");
  const Result<JobReader> reader = JobReader::Open(directory);
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().kind, ErrorKind::kVersion);
}

// What an archive, or another user's directory, looks like.
class ReadOnlyJob : public JobReaderTest {
 protected:
  // In a process without the right to write there.
  std::string ReadAsNobody(const JobDirectory& directory) {
    return InChildProcess([&]() -> std::string {
      namespace fs = std::filesystem;
      for (const auto& entry : fs::directory_iterator(directory.path())) {
        if (entry.is_regular_file()) fs::permissions(entry.path(), fs::perms(0444));
      }
      fs::permissions(directory.path(), fs::perms(0555));
      for (fs::path parent = directory.path().parent_path(); parent != place_.path().parent_path();
           parent = parent.parent_path()) {
        fs::permissions(parent, fs::perms(0755));
      }
      if (geteuid() == 0 && setuid(65534) != 0) return "cannot become nobody";
      Result<JobReader> reader = JobReader::Open(directory);
      if (!reader) return reader.error().message;
      const Result<JobSnapshot> snapshot = reader->ReadSnapshot();
      return snapshot ? std::to_string(snapshot->records.size()) + " records" : snapshot.error().message;
    });
  }
};

TEST_F(ReadOnlyJob, AFinishedJobCanBeReadFromADirectoryThatCanNotBeWritten) {
  EXPECT_EQ(ReadAsNobody(Ended()), "1 records");
}

TEST_F(ReadOnlyJob, AnUnfinishedWriteIsNotPassedOver) {
  const EngineHarness job = RestartedJob();
  const JobDirectory directory = Create(job.spec);
  const std::filesystem::path kept = place_ / "kept";
  {
    Journal journal = OpenJournal(directory, JournalStorage::kWriteAhead);
    const Played played = Play(job.inputs);
    ASSERT_TRUE(journal.Append(played.batch, played.engine.job()));
    // What a killed master leaves: everything of it is still in the write-ahead log.
    std::filesystem::create_directory(kept);
    for (const char* name : {"journal.db", "journal.db-wal"}) {
      std::filesystem::copy_file(directory.path() / name, kept / name);
    }
  }
  for (const char* name : {"journal.db", "journal.db-wal"}) {
    std::filesystem::copy_file(kept / name, directory.path() / name, std::filesystem::copy_options::overwrite_existing);
  }
  const std::string said = ReadAsNobody(directory);
  EXPECT_TRUE(said == "1 records" || said.find("was left in the middle of a write") != std::string::npos) << said;
}

TEST_F(JobReaderTest, JobsAreListedNewestFirst) {
  JobSpec old_job = EngineHarness().spec, new_job = old_job;
  old_job.id = *JobId::Parse("dlczzzzzzzzzzzzz");
  old_job.create_time = Wall{Duration{1}};
  new_job.id = *JobId::Parse("dlcaaaaaaaaaaaaa");
  new_job.create_time = Wall{Duration{2}};
  Create(old_job);
  Create(new_job);
  const std::vector<ListedJob> jobs = ListJobs(home_);
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].spec, new_job);
  EXPECT_EQ(jobs[1].spec, old_job);
  EXPECT_EQ(jobs[1].summary.status, JobStatus::kCreating);
  EXPECT_EQ(jobs[1].problem, "");
}

TEST_F(JobReaderTest, ADamagedJobHidesNoOther) {
  const JobDirectory good = Ended();
  const auto broken = [&](const std::string& id) {
    JobSpec spec = EngineHarness().spec;
    spec.id = *JobId::Parse(id);
    return Create(spec);
  };
  std::ofstream(broken("dlcbbbbbbbbbbbbb").spec()) << "{";
  std::ofstream(broken("dlcccccccccccccc").spec()) << "{}";
  std::ofstream(broken("dlcddddddddddddd").journal()) << std::string(5000, 'x');
  std::filesystem::remove(broken("dlceeeeeeeeeeeee").spec());
  std::filesystem::create_directory(home_.jobs() / "not-a-job");

  const std::vector<ListedJob> jobs = ListJobs(home_);
  ASSERT_EQ(jobs.size(), 5u);
  for (const ListedJob& job : jobs) {
    const bool is_good = job.spec.id.text() == good.path().filename();
    EXPECT_EQ(job.problem.empty(), is_good) << job.spec.id.text() << job.problem;
    EXPECT_TRUE(JobId::Parse(job.spec.id.text()));
    EXPECT_EQ(job.problem.find('\n'), std::string::npos);
  }
}

TEST_F(JobReaderTest, AHomeWithoutJobsHasAnEmptyList) { EXPECT_TRUE(ListJobs(Home(place_ / "none")).empty()); }

}  // namespace
}  // namespace aimaster
