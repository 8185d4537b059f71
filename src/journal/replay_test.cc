#include "journal/replay.h"

#include "journal/job_reader.h"
#include "journal/journal_harness.h"

namespace aimaster {
namespace {

class ReplayTest : public testing::Test {
 protected:
  ReplayTest() : directory_(*JobDirectory::Create(Home(home_.path()), EngineHarness().spec)) {}

  void Write(const std::vector<Input>& inputs) {
    Journal journal = std::move(*Journal::OpenOrCreate(directory_.journal(), "rules"));
    const Played played = Play(inputs);
    ASSERT_TRUE(journal.Append(played.batch, played.engine.job()));
  }
  Replay Again(const ReplayOptions& options = {}) {
    JobReader reader = *JobReader::Open(directory_);
    Result<Replay> replay = reader.Replay(options);
    EXPECT_TRUE(replay) << replay.error().message;
    return replay.value_or(Replay{});
  }
  // Two restarts, then the end.
  static EngineHarness TwoRestarts() {
    EngineHarness job = RestartedJob();
    job.Pass(std::chrono::seconds{90});
    job.FailAndJudge(2, Retryable::kYes, 9);
    job.EndedAll();
    job.Run();
    for (uint32_t i = 0; i < 4; ++i) {
      job.Feed(RankSucceeded{InstanceIndex{i}, job.AttemptOf(i), Rank{i}});
      job.Ended(i);
    }
    EXPECT_EQ(job.job().status, JobStatus::kSucceeded);
    return job;
  }

  const TemporaryDirectory home_;
  const JobDirectory directory_;
};

TEST_F(ReplayTest, TheSameInputsGiveTheSameDecisions) {
  Write(TwoRestarts().inputs);
  const Replay replay = Again();
  EXPECT_EQ(replay.ending, ReplayEnding::kSame);
  EXPECT_EQ(replay.state_difference, "");
  EXPECT_EQ(replay.status, JobStatus::kSucceeded);
  EXPECT_EQ(replay.replayed_inputs, replay.recorded_inputs);
  ASSERT_EQ(replay.inputs.size(), 3u);
  EXPECT_EQ(replay.inputs[0].recorded.front().kind, "Restart");
  EXPECT_EQ(replay.inputs[2].replayed.front().kind, "Succeed");
  EXPECT_EQ(replay.rules, std::set<std::string>{"rules"});
}

TEST_F(ReplayTest, WithAnotherLimitItEndsWhereTheHistoriesPart) {
  Write(TwoRestarts().inputs);
  FaultToleranceParameters parameters = EngineHarness().spec.fault_tolerance;
  parameters.max_num_of_job_restart = 1;
  const Replay replay = Again({.parameters = parameters});
  EXPECT_EQ(replay.ending, ReplayEnding::kParts);
  EXPECT_FALSE(replay.parts_anyway);
  ASSERT_EQ(replay.inputs.size(), 2u);
  EXPECT_EQ(replay.inputs.back().recorded.front().kind, "Restart");
  EXPECT_EQ(replay.inputs.back().replayed.front().kind, "Fail");
  EXPECT_EQ(replay.inputs.back().round, Round{1});
  EXPECT_LT(replay.replayed_inputs, replay.recorded_inputs);
}

TEST_F(ReplayTest, AWiderLimitChangesWordsAlone) {
  Write(TwoRestarts().inputs);
  FaultToleranceParameters parameters = EngineHarness().spec.fault_tolerance;
  parameters.max_num_of_job_restart = 30;
  const Replay replay = Again({.parameters = parameters});
  EXPECT_EQ(replay.ending, ReplayEnding::kWords);
  EXPECT_EQ(replay.status, JobStatus::kSucceeded);
}

TEST_F(ReplayTest, AnotherRecordedDecisionIsFoundAndNoParameterIsBlamedForIt) {
  Write(TwoRestarts().inputs);
  Sql(directory_.journal(), "UPDATE decision SET body = replace(body, '\"Restart\"', '\"Fail\"') WHERE seq = 1");
  EXPECT_EQ(Again().ending, ReplayEnding::kParts);
  FaultToleranceParameters parameters = EngineHarness().spec.fault_tolerance;
  parameters.max_num_of_job_restart = 1;
  EXPECT_TRUE(Again({.parameters = parameters}).parts_anyway);
}

TEST_F(ReplayTest, OtherRulesAreReportedBesideTheSameDecisions) {
  Write(RestartedJob().inputs);
  const Replay replay = Again({.judge = [](const JobState& job) {
    EXPECT_EQ(job.failures.size(), 1u);
    EXPECT_EQ(job.instance_of_rank.size(), 4u);
    return Judgement{.fault = "NewName"};
  }});
  EXPECT_EQ(replay.ending, ReplayEnding::kSame);
  ASSERT_EQ(replay.judgements.size(), 1u);
  EXPECT_EQ(replay.judgements.front().recorded.fault, "TestFault");
  EXPECT_EQ(replay.judgements.front().now.fault, "NewName");
}

TEST_F(ReplayTest, AGapInTheHistoryIsDamage) {
  Write(RestartedJob().inputs);
  Sql(directory_.journal(), "DELETE FROM input WHERE seq = 5");
  JobReader reader = *JobReader::Open(directory_);
  const Result<Replay> replay = reader.Replay({});
  ASSERT_FALSE(replay);
  EXPECT_NE(replay.error().message.find("input 5 is missing"), std::string::npos) << replay.error().message;
}

}  // namespace
}  // namespace aimaster
