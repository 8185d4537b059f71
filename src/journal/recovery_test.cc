// Masters come and go, of this version and of others; the job goes on from what was decided.
#include "journal/recovery.h"

#include <unistd.h>

#include "journal/journal_harness.h"
#include "journal/replay.h"
#include "journal/rows.h"

namespace aimaster {
namespace {

class RecoveryTest : public testing::Test {
 protected:
  // A journal with these inputs, some in each commit.
  void Write(const std::vector<Input>& inputs, size_t per_commit = 3) {
    Journal journal = std::move(*Journal::OpenOrCreate(path(), "rules"));
    Engine engine;
    for (size_t i = 0; i < inputs.size(); i += per_commit) {
      JournalBatch batch;
      for (size_t k = i; k < std::min(i + per_commit, inputs.size()); ++k) {
        StepResult result = engine.Step(inputs[k]);
        batch.emplace_back(inputs[k], std::move(result));
      }
      const Status appended = journal.Append(batch, engine.job());
      ASSERT_TRUE(appended) << appended.error().message;
    }
  }
  Result<Recovered> Recover() {
    Journal journal = std::move(*Journal::OpenOrCreate(path(), "rules"));
    CrashMark mark(directory_ / "crash_mark");
    return RecoverJob(journal, mark);
  }
  std::filesystem::path path() const { return directory_ / "journal.db"; }

  const TemporaryDirectory directory_;
};

TEST_F(RecoveryTest, AtEveryInputTheSuccessorKnowsWhatThePredecessorKnew) {
  EngineHarness job = RestartedJob();
  job.Fail(2, 9);
  job.Collect();
  job.Judged(job.Verdict(2));
  for (size_t length = 1; length <= job.inputs.size(); ++length) {
    std::filesystem::remove(path());
    Write({job.inputs.begin(), job.inputs.begin() + static_cast<std::ptrdiff_t>(length)}, 1 + length % 4);
    Result<Recovered> recovered = Recover();
    ASSERT_TRUE(recovered) << recovered.error().message;
    Engine engine;
    for (size_t i = 0; i < length; ++i) engine.Step(job.inputs[i]);
    ASSERT_EQ(StoreState(recovered->engine.job()), StoreState(engine.job())) << "after input " << length;
    EXPECT_EQ(recovered->engine.job().tallies, engine.job().tallies);
    EXPECT_EQ(recovered->engine.Outstanding(), engine.Outstanding());
    EXPECT_EQ(recovered->engine.NextDeadline(), engine.NextDeadline());
    EXPECT_EQ(recovered->engine_change, "");
    EXPECT_EQ(recovered->last, job.inputs[length - 1].at);
    for (size_t i = length; i < job.inputs.size(); ++i) {
      ASSERT_EQ(recovered->engine.Step(job.inputs[i]), engine.Step(job.inputs[i])) << "input " << i;
    }
  }
}

// Workers that are being stopped, wait for a node, run on another node than their slot, and have failed.
TEST_F(RecoveryTest, AtEveryInputOfAnAsyncJobTheSuccessorKnowsHowFarEachInstanceIs) {
  EngineHarness job(4, 2);
  job.spec.fault_tolerance.execution_mode = ExecutionMode::kAsync;
  job.Run();
  job.Fail(0);
  job.Collect();
  Judgement suspect = job.Verdict(0);
  suspect.node_suspect = true;
  suspect.severity = Severity::kIsolateNode;
  job.JudgedApart({suspect});
  job.Ended(0);
  job.FailAlone(2);
  job.Feed(NodeDenied{"only two"});
  job.Feed(InstanceStarted{InstanceIndex{0}, job.AttemptOf(0)});
  job.Fail(3);
  job.Ended(2);
  for (size_t length = 1; length <= job.inputs.size(); ++length) {
    std::filesystem::remove(path());
    Write({job.inputs.begin(), job.inputs.begin() + static_cast<std::ptrdiff_t>(length)}, 1 + length % 4);
    Result<Recovered> recovered = Recover();
    ASSERT_TRUE(recovered) << recovered.error().message;
    Engine engine;
    for (size_t i = 0; i < length; ++i) engine.Step(job.inputs[i]);
    ASSERT_EQ(StoreState(recovered->engine.job()), StoreState(engine.job())) << "after input " << length;
    EXPECT_EQ(recovered->engine.job().tallies, engine.job().tallies);
    EXPECT_EQ(recovered->engine.Outstanding(), engine.Outstanding());
    EXPECT_EQ(recovered->engine.NextDeadline(), engine.NextDeadline());
    EXPECT_EQ(recovered->engine_change, "");
    for (size_t i = length; i < job.inputs.size(); ++i) {
      ASSERT_EQ(recovered->engine.Step(job.inputs[i]), engine.Step(job.inputs[i])) << "input " << i;
    }
  }
}

TEST_F(RecoveryTest, AJournalThatDoesNotKnowPlacesIsReadAsItWas) {
  const EngineHarness job = RestartedJob();
  Write(job.inputs);
  Sql(path(), "UPDATE state SET body = json_remove(body, '$.placement')");
  Sql(path(), "UPDATE snapshot SET body = json_remove(body, '$.rest.placement')");
  Result<Recovered> recovered = Recover();
  ASSERT_TRUE(recovered) << recovered.error().message;
  EXPECT_EQ(recovered->engine.job().placement, job.job().placement);
  EXPECT_EQ(recovered->engine_change, "") << "nothing is different but how it is written";
}

TEST_F(RecoveryTest, ANewJobHasNothingToRecover) {
  const Result<Recovered> recovered = Recover();
  ASSERT_TRUE(recovered);
  EXPECT_EQ(recovered->inputs, 0);
  EXPECT_EQ(recovered->last, std::nullopt);
}

TEST_F(RecoveryTest, WhatAnotherEngineDecidedStaysAndIsSaidOnce) {
  const EngineHarness job = RestartedJob();
  Write(job.inputs);
  Sql(path(), "UPDATE decision SET body = replace(body, '\"Restart\"', '\"Fail\"')");
  Sql(path(), "UPDATE master SET program = 'aimaster 9.9', engine = 77");
  Sql(path(), "UPDATE state SET body = json_set(body, '$.restarts', 2)");
  Result<Recovered> recovered = Recover();
  ASSERT_TRUE(recovered) << recovered.error().message;
  EXPECT_NE(recovered->engine_change.find("aimaster 9.9 (engine 77) decided 'Fail: "), std::string::npos)
      << recovered->engine_change;
  EXPECT_NE(recovered->engine_change.find("(FailureJudged)"), std::string::npos);
  EXPECT_EQ(recovered->engine.job().restarts, 2u) << "the recorded state counts";

  // The successor says so in the journal, and goes on from a snapshot of its own.
  {
    Journal journal = std::move(*Journal::OpenOrCreate(path(), "rules"));
    const Input started{job.now, MasterStarted{journal.epoch(), recovered->engine_change}};
    StepResult result = recovered->engine.Step(started);
    ASSERT_EQ(result.decisions.size(), 1u);
    EXPECT_EQ(result.decisions.front().kind, "Continue");
    EXPECT_EQ(result.events.back().type, "aimaster.master.engine-changed");
    ASSERT_TRUE(journal.Append({{started, result}}, recovered->engine.job()));
  }
  const Result<Recovered> again = Recover();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->engine_change, "") << "it is not checked twice";
  EXPECT_EQ(again->engine.job().restarts, 2u);
}

TEST_F(RecoveryTest, AnotherStateBehindTheSameDecisionsIsSaidToo) {
  Write(RestartedJob().inputs);
  Sql(path(), "UPDATE state SET body = json_set(body, '$.port_refusals', 4)");
  const Result<Recovered> recovered = Recover();
  ASSERT_TRUE(recovered);
  EXPECT_NE(recovered->engine_change.find("port_refusals: 0, not 4"), std::string::npos) << recovered->engine_change;
  EXPECT_EQ(recovered->engine.job().port_refusals, 4u);
}

TEST_F(RecoveryTest, ALongHistoryIsNotSteppedFromItsBeginning) {
  EngineHarness job(2);
  job.Run();
  for (int i = 0; i < 5000; ++i) {
    job.Pass(std::chrono::seconds{1});
    job.Feed(Tick{});
  }
  Write(job.inputs, 100);
  const Result<Recovered> recovered = Recover();
  ASSERT_TRUE(recovered);
  EXPECT_EQ(recovered->inputs, static_cast<int64_t>(job.inputs.size()));
  EXPECT_LE(recovered->checked, SnapshotAfter(2) + 100);
  EXPECT_EQ(Sql(path(), "SELECT count(*) FROM snapshot"), "1\n");
}

TEST_F(RecoveryTest, AJournalOfVersionOneIsOpenedAndTellsEverythingFromThenOn) {
  EngineHarness job = RestartedJob();
  Write(job.inputs);
  Sql(path(), "DROP TABLE state; DROP TABLE snapshot; DROP TABLE failure; DROP TABLE master; PRAGMA user_version = 1");
  {
    Journal journal = std::move(*Journal::OpenOrCreate(path(), "rules"));
    CrashMark mark(directory_ / "crash_mark");
    Result<Recovered> recovered = RecoverJob(journal, mark);
    ASSERT_TRUE(recovered) << recovered.error().message;
    ASSERT_EQ(StoreState(recovered->engine.job()), StoreState(job.job()));
    const Input started{job.now, MasterStarted{journal.epoch()}};
    StepResult result = recovered->engine.Step(started);
    ASSERT_TRUE(journal.Append({{started, result}}, recovered->engine.job()));
  }
  const Result<Recovered> recovered = Recover();
  ASSERT_TRUE(recovered) << recovered.error().message;
  EXPECT_EQ(recovered->checked, 0);
  EXPECT_EQ(recovered->engine.job().instances, job.job().instances);
}

TEST_F(RecoveryTest, OneThatCanOnlyBeDerivedHasToBeDerivedAlike) {
  Write(RestartedJob().inputs);
  Sql(path(), "DROP TABLE state; DROP TABLE snapshot; DROP TABLE failure; DROP TABLE master");
  Sql(path(), "UPDATE decision SET body = replace(body, '\"Restart\"', '\"Fail\"'); PRAGMA user_version = 1");
  const Result<Recovered> recovered = Recover();
  ASSERT_FALSE(recovered);
  EXPECT_EQ(recovered.error().kind, ErrorKind::kVersion);
  EXPECT_NE(recovered.error().message.find("only the version that began the job"), std::string::npos);
}

TEST_F(RecoveryTest, WhatDoesNotFitTogetherIsRefused) {
  for (const char* damage :
       {"DELETE FROM instance WHERE id = 1", "DELETE FROM round", "DELETE FROM input WHERE seq = 1",
        "DELETE FROM node WHERE id = 0", "UPDATE state SET input = 2", "UPDATE state SET body = 'nonsense'",
        "UPDATE instance SET body = json_set(body, '$.ranks', 4000000000)",
        "UPDATE instance SET body = json_set(body, '$.node', 99)",
        "UPDATE state SET body = json_set(body, '$.ranks_ended', '')",
        "UPDATE state SET body = json_set(body, '$.deadlines_ns', json('{\"stop\": 9223372036854775807}'))",
        "UPDATE input SET body = json_set(body, '$.spec.roles[0].count', 4000000000) WHERE seq = 1"}) {
    std::filesystem::remove(path());
    Write(RestartedJob().inputs);
    Sql(path(), damage);
    const Result<Recovered> recovered = Recover();
    EXPECT_FALSE(recovered) << damage;
    EXPECT_TRUE(recovered || !recovered.error().message.empty());
  }
}

TEST_F(RecoveryTest, AnEngineThatDiedOverAnInputIsNotAskedAgain) {
  const EngineHarness job = RestartedJob();
  Write(job.inputs);
  Sql(path(), "UPDATE decision SET body = replace(body, '\"Restart\"', '\"Fail\"')");
  EXPECT_EQ(InChildProcess([&]() -> std::string {
              CrashMark mark(directory_ / "crash_mark");
              mark.Enter(job.inputs.back());
              _exit(0);
            }),
            "");
  const Result<Recovered> recovered = Recover();
  ASSERT_TRUE(recovered);
  EXPECT_EQ(recovered->checked, 0);
  EXPECT_NE(recovered->skipped_check.find("InstanceReady"), std::string::npos) << recovered->skipped_check;
}

}  // namespace
}  // namespace aimaster
