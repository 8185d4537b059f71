#include "journal/journal.h"

#include <sys/stat.h>

#include "journal/codec.h"
#include "journal/journal_harness.h"

namespace aimaster {
namespace {

class JournalTest : public testing::Test {
 protected:
  Journal Open(JournalStorage storage = JournalStorage::kByFileSystem, const std::string& rules = "rules-1") {
    Result<Journal> journal = Journal::OpenOrCreate(path_, rules, storage);
    EXPECT_TRUE(journal) << journal.error().message;
    return std::move(*journal);
  }
  static Status Append(Journal& journal, const Played& played) {
    return journal.Append(played.batch, played.engine.job());
  }

  TemporaryDirectory directory_;
  const std::filesystem::path path_ = directory_ / "journal.db";
};

TEST_F(JournalTest, EveryMasterHasAGreaterEpochThanAllBefore) {
  EXPECT_EQ(Open().epoch(), Epoch{1});
  EXPECT_EQ(Open().epoch(), Epoch{2});
  EXPECT_EQ(Open().epoch(), Epoch{3});
}

TEST_F(JournalTest, ASuccessorKnowsWhatItsPredecessorKnew) {
  const EngineHarness job = RestartedJob();
  {
    Journal journal = Open();
    ASSERT_TRUE(Append(journal, Play(job.inputs)));
  }
  Journal successor = Open();
  const Result<std::vector<Input>> inputs = successor.LoadInputs();
  ASSERT_TRUE(inputs) << inputs.error().message;
  EXPECT_EQ(*inputs, job.inputs);

  const Played again = Play(*inputs);
  EXPECT_EQ(Summarize(again.engine.job()), Summarize(job.job()));
  EXPECT_EQ(again.engine.job().instances, job.job().instances);
  EXPECT_EQ(again.engine.job().nodes, job.job().nodes);
  EXPECT_EQ(again.engine.job().rounds, job.job().rounds);
  EXPECT_EQ(again.engine.job().records, job.job().records);
  EXPECT_EQ(again.engine.Outstanding(), job.engine.Outstanding());
  EXPECT_EQ(again.engine.NextDeadline(), job.engine.NextDeadline());
}

TEST_F(JournalTest, BatchesAreLoadedInTheOrderInWhichTheyWereAppended) {
  const EngineHarness job = RestartedJob();
  Journal journal = Open();
  Engine engine;
  for (const Input& input : job.inputs) {
    StepResult result = engine.Step(input);
    ASSERT_TRUE(journal.Append({{input, std::move(result)}}, engine.job()));
  }
  EXPECT_EQ(*journal.LoadInputs(), job.inputs);
}

TEST_F(JournalTest, AMasterThatWasReplacedCanNotAppend) {
  for (const JournalStorage storage : {JournalStorage::kWriteAhead, JournalStorage::kRollback}) {
    const EngineHarness job = RestartedJob();
    std::filesystem::remove(path_);
    Journal old_master = Open(storage);
    ASSERT_TRUE(Append(old_master, Play({job.inputs[0]})));
    Journal new_master = Open(storage);

    const Status refused = Append(old_master, Play(job.inputs));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::kFenced);
    EXPECT_EQ(new_master.LoadInputs()->size(), 1u) << "nothing of it was written";

    EXPECT_TRUE(Append(new_master, Play({job.inputs[1]})));
    EXPECT_EQ(Append(old_master, {}).error().kind, ErrorKind::kFenced) << "and it stays so";
  }
}

TEST_F(JournalTest, ANewerJournalIsRefusedAndLeftAsItIs) {
  {
    Journal journal = Open();
  }
  Sql(path_, "PRAGMA user_version = 99");
  const std::string bytes = BytesOf(path_);

  const Result<Journal> journal = Journal::OpenOrCreate(path_, "rules");
  ASSERT_FALSE(journal);
  EXPECT_EQ(journal.error().kind, ErrorKind::kVersion);
  EXPECT_NE(journal.error().message.find(path_.string() + " was written by a newer version"), std::string::npos)
      << journal.error().message;
  EXPECT_EQ(BytesOf(path_), bytes);
}

TEST_F(JournalTest, AFileThatIsNoJournalIsRefusedByName) {
  std::ofstream(path_) << std::string(4096, 'x');
  const Result<Journal> journal = Journal::OpenOrCreate(path_, "rules");
  ASSERT_FALSE(journal);
  EXPECT_EQ(journal.error().kind, ErrorKind::kEnvironment);
  EXPECT_NE(journal.error().message.find(path_.string()), std::string::npos) << journal.error().message;
}

TEST_F(JournalTest, ADirectoryThatIsMissingIsNamed) {
  const Result<Journal> journal = Journal::OpenOrCreate(directory_ / "gone/journal.db", "rules");
  ASSERT_FALSE(journal);
  EXPECT_NE(journal.error().message.find((directory_ / "gone/journal.db").string() + ": No such file"),
            std::string::npos)
      << journal.error().message;
}

TEST_F(JournalTest, APathMayHoldWhatAUriMayNot) {
  std::filesystem::create_directory(directory_ / "a?b#c%41 d");
  const std::filesystem::path path = directory_ / "a?b#c%41 d/journal.db";
  ASSERT_TRUE(Journal::OpenOrCreate(path, "rules"));
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(JournalTest, EveryInputSaysWhoDecidedByWhichRules) {
  const EngineHarness job = RestartedJob();
  {
    Journal first = Open(JournalStorage::kByFileSystem, "rules-1");
    ASSERT_TRUE(Append(first, Play({job.inputs[0]})));
  }
  Journal second = Open(JournalStorage::kByFileSystem, "rules-2");
  ASSERT_TRUE(Append(second, Play({job.inputs[1]})));
  EXPECT_EQ(Sql(path_, "SELECT seq, epoch, kind, rules FROM input"),
            "1|1|JobSubmitted|rules-1\n2|2|NodeJoined|rules-2\n");
  EXPECT_TRUE(Sql(path_, "SELECT value FROM meta WHERE key = 'program'").starts_with("aimaster "));
}

TEST_F(JournalTest, ItIsReadableForItsOwnerAlone) {
  const mode_t before = umask(0);
  Journal journal = Open();
  ASSERT_TRUE(Append(journal, Play(RestartedJob().inputs)));
  umask(before);
  for (const auto& entry : std::filesystem::directory_iterator(directory_.path())) {
    EXPECT_EQ(entry.status().permissions(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_write)
        << entry.path();
  }
}

TEST_F(JournalTest, TheStorageFollowsTheJobToAnotherFileSystem) {
  const EngineHarness job = RestartedJob();
  {
    Journal journal = Open(JournalStorage::kWriteAhead);
    ASSERT_TRUE(Append(journal, Play(job.inputs)));
  }
  {
    Journal journal = Open(JournalStorage::kRollback);
    ASSERT_TRUE(Append(journal, {}));
    EXPECT_FALSE(std::filesystem::exists(path_.string() + "-shm")) << "no shared memory";
    EXPECT_EQ(*journal.LoadInputs(), job.inputs);
  }
  EXPECT_EQ(*Open(JournalStorage::kWriteAhead).LoadInputs(), job.inputs);
}

TEST_F(JournalTest, AStepWritesOnlyTheNodesThatItChanged) {
  const EngineHarness job = RestartedJob();
  Journal journal = Open();
  Played played = Play(job.inputs);
  ASSERT_TRUE(Append(journal, played));
  EXPECT_EQ(Sql(path_, "SELECT count(*) FROM node"), "2\n");

  Sql(path_, "UPDATE node SET body = 'untouched'");
  JobState changed = played.engine.job();
  changed.nodes.at(NodeIndex{1}).isolated = true;
  ASSERT_TRUE(journal.Append({}, changed));
  EXPECT_EQ(Sql(path_, "SELECT id FROM node WHERE body = 'untouched'"), "0\n");
}

TEST_F(JournalTest, AnInputThatCanNotBeReadIsNamed) {
  {
    Journal journal = Open();
    ASSERT_TRUE(Append(journal, Play(RestartedJob().inputs)));
  }
  Sql(path_, "UPDATE input SET body = '{' WHERE seq = 2");
  EXPECT_NE(Open().LoadInputs().error().message.find("input 2 of the journal can't be read"), std::string::npos);
  Sql(path_, R"(UPDATE input SET body = '{"kind":"Teleported","at":{}}' WHERE seq = 2)");
  EXPECT_EQ(Open().LoadInputs().error().kind, ErrorKind::kVersion) << "only a newer program knows that kind";
}

}  // namespace
}  // namespace aimaster
