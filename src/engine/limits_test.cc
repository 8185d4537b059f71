// Policies and limits: when a failure restarts the job and when it ends it, and that the reason names the parameter.
#include "engine/limits.h"

#include "engine/engine_harness.h"

namespace aimaster {
namespace {

// Fails rank `rank` and, if the job is restarted, brings the next round up. True when it was restarted.
bool SurvivesFailure(EngineHarness& job, uint32_t rank, Retryable retryable = Retryable::kYes, int code = 1) {
  job.FailAndJudge(rank, retryable, code);
  job.EndedAll();
  if (job.job().status == JobStatus::kFailed) return false;
  job.Run();
  return true;
}

void ExpectFailedBecause(const EngineHarness& job, const std::string& why) {
  EXPECT_EQ(job.job().status, JobStatus::kFailed);
  EXPECT_TRUE(job.job().reason_message.contains(why)) << job.job().reason_message;
}

struct PolicyCase {
  FaultTolerantPolicy policy;
  Retryable retryable;
  bool survives;
};

TEST(LimitsTest, ThePolicyDecidesWhatIsRetryable) {
  for (const PolicyCase& c : {PolicyCase{FaultTolerantPolicy::kOnFailure, Retryable::kNo, true},
                              PolicyCase{FaultTolerantPolicy::kOnFailure, Retryable::kYes, true},
                              PolicyCase{FaultTolerantPolicy::kExitCodeAndErrorMsg, Retryable::kNo, false},
                              PolicyCase{FaultTolerantPolicy::kExitCodeAndErrorMsg, Retryable::kYes, true},
                              PolicyCase{FaultTolerantPolicy::kNever, Retryable::kNo, false},
                              PolicyCase{FaultTolerantPolicy::kNever, Retryable::kYes, false}}) {
    EngineHarness job;
    job.spec.fault_tolerance.fault_tolerant_policy = c.policy;
    job.Run();
    EXPECT_EQ(SurvivesFailure(job, 0, c.retryable), c.survives) << int(c.policy) << " " << Name(c.retryable);
  }
}

TEST(LimitsTest, RestartsEndAtTheirNumber) {
  for (uint32_t limit : {0u, 1u, 2u}) {
    EngineHarness job;
    job.spec.fault_tolerance.max_num_of_job_restart = limit;
    job.Run();
    for (uint32_t restart = 0; restart < limit; ++restart) ASSERT_TRUE(SurvivesFailure(job, restart % 2));
    EXPECT_FALSE(SurvivesFailure(job, 0));
    ExpectFailedBecause(job, "--max-num-of-job-restart=" + std::to_string(limit));
    EXPECT_EQ(job.job().records.size(), limit);
    EXPECT_EQ(job.job().restarts, limit);
  }
}

// All ranks of an mpirun belong to its instance; a crash of rank 3 says nothing about one of rank 1.
TEST(LimitsTest, RanksOfMpiArePlacesOfTheirOwn) {
  EngineHarness job(1);
  job.Run();
  const auto survives = [&job](uint32_t mpi_rank) {
    job.Fail(0, 139);
    if (job.job().phase == Phase::kCollecting) job.Collect();
    Judgement judgement = job.Verdict(0, Retryable::kOncePerPlace, 139);
    judgement.details.front().mpi_rank = mpi_rank;
    job.Judged(judgement);
    job.EndedAll();
    if (job.job().status == JobStatus::kFailed) return false;
    job.Run();
    return true;
  };
  EXPECT_TRUE(survives(1));
  EXPECT_TRUE(survives(3));
  EXPECT_FALSE(survives(1));
}

TEST(LimitsTest, TheSameErrorTooOftenEndsTheJob) {
  EngineHarness job;
  job.spec.fault_tolerance.max_num_of_job_restart = 100;
  job.spec.fault_tolerance.max_num_of_same_error = 2;
  job.Run();
  EXPECT_TRUE(SurvivesFailure(job, 0, Retryable::kYes, 9));
  EXPECT_TRUE(SurvivesFailure(job, 1, Retryable::kYes, 9)) << "another instance is another error";
  EXPECT_TRUE(SurvivesFailure(job, 0, Retryable::kYes, 8)) << "another code is another error";
  EXPECT_TRUE(SurvivesFailure(job, 0, Retryable::kYes, 9));
  EXPECT_FALSE(SurvivesFailure(job, 0, Retryable::kYes, 9)) << "the third time";
  ExpectFailedBecause(job, "--max-num-of-same-error=2");
}

TEST(LimitsTest, TheFourthOfTenWorkersIsOverARateOfThirtyPercent) {
  EngineHarness job(10);
  job.spec.fault_tolerance.max_num_of_job_restart = 100;
  job.spec.fault_tolerance.max_tolerated_failure_rate = 0.3;
  job.Run();
  for (uint32_t worker : {0u, 1u, 1u, 2u, 0u}) EXPECT_TRUE(SurvivesFailure(job, worker)) << worker;
  EXPECT_FALSE(SurvivesFailure(job, 3));
  ExpectFailedBecause(job, "--max-tolerated-failure-rate=0.3");
}

TEST(LimitsTest, ACrashIsRetriedOncePerPlace) {
  EngineHarness job;
  job.spec.fault_tolerance.max_num_of_job_restart = 100;
  job.Run();
  EXPECT_TRUE(SurvivesFailure(job, 0, Retryable::kOncePerPlace, 139));
  EXPECT_TRUE(SurvivesFailure(job, 1, Retryable::kOncePerPlace, 139));
  EXPECT_FALSE(SurvivesFailure(job, 0, Retryable::kOncePerPlace, 139));
}

TEST(LimitsTest, NoProgressWithinTheFirstMinuteEndsTheJob) {
  EngineHarness job;
  job.spec.fault_tolerance.max_num_of_job_restart = 100;
  job.spec.fault_tolerance.no_progress_limit = 3;
  job.Run();
  EXPECT_TRUE(SurvivesFailure(job, 0));
  EXPECT_TRUE(SurvivesFailure(job, 0));
  job.Pass(std::chrono::minutes{2});
  EXPECT_TRUE(SurvivesFailure(job, 0)) << "a round that lasted has made progress";
  EXPECT_TRUE(SurvivesFailure(job, 0));
  EXPECT_TRUE(SurvivesFailure(job, 0));
  EXPECT_FALSE(SurvivesFailure(job, 0));
  ExpectFailedBecause(job, "--no-progress-limit=3");
}

// Rank `rank` fails after it had told its step.
bool SurvivesFailureAtStep(EngineHarness& job, uint32_t rank, std::optional<uint64_t> step) {
  RankFailure failure = job.Failure(rank, 1);
  failure.step = step;
  job.Feed(RankFailed{failure});
  if (job.job().phase == Phase::kCollecting) job.Collect();
  job.Judged(job.Verdict(rank));
  job.EndedAll();
  if (job.job().status == JobStatus::kFailed) return false;
  job.Run();
  job.Pass(std::chrono::minutes{10});
  return true;
}

TEST(LimitsTest, TheSameRootCauseAtTheSameStepIsNoProgress) {
  EngineHarness job;
  job.spec.fault_tolerance.max_num_of_job_restart = 100;
  job.spec.fault_tolerance.no_progress_limit = 3;
  job.Run();
  job.Pass(std::chrono::minutes{10});
  EXPECT_TRUE(SurvivesFailureAtStep(job, 0, 500));
  EXPECT_TRUE(SurvivesFailureAtStep(job, 0, 500));
  EXPECT_TRUE(SurvivesFailureAtStep(job, 0, 501)) << "further than before";
  EXPECT_TRUE(SurvivesFailureAtStep(job, 0, 501));
  EXPECT_TRUE(SurvivesFailureAtStep(job, 0, std::nullopt)) << "it said nothing: that is no step";
  EXPECT_TRUE(SurvivesFailureAtStep(job, 1, 501)) << "another instance";
  EXPECT_TRUE(SurvivesFailureAtStep(job, 0, 501));
  EXPECT_TRUE(SurvivesFailureAtStep(job, 0, 501));
  EXPECT_FALSE(SurvivesFailureAtStep(job, 0, 501));
  ExpectFailedBecause(job, "3. time at step 501, --no-progress-limit=3");
}

// Rank 0 fails with one of the job's own texts in its output.
bool SurvivesFailureWithText(FaultTolerantPolicy policy, Retryable retryable, const std::string& text) {
  EngineHarness job;
  job.spec.fault_tolerance.fault_tolerant_policy = policy;
  job.Run();
  RankFailure failure = job.Failure(0, 1);
  failure.retryable_text = text;
  job.Feed(RankFailed{failure});
  job.Collect();
  job.Judged(job.Verdict(0, retryable));
  return job.job().status != JobStatus::kStopping;
}

TEST(LimitsTest, ATextOfTheJobsOwnMakesAFailureRetryableUnlessNoneIs) {
  EXPECT_TRUE(SurvivesFailureWithText(FaultTolerantPolicy::kExitCodeAndErrorMsg, Retryable::kNo, "connect timeout"));
  EXPECT_FALSE(SurvivesFailureWithText(FaultTolerantPolicy::kExitCodeAndErrorMsg, Retryable::kNo, ""));
  EXPECT_FALSE(SurvivesFailureWithText(FaultTolerantPolicy::kNever, Retryable::kNo, "connect timeout"));
}

// The ranks of an mpirun print and tell beneath the launcher, also those on the hosts of other workers.
TEST(LimitsTest, WhatTheLauncherHeardCountsForARankOfMpiOnAnotherHost) {
  const auto survives = [](std::optional<uint32_t> mpi_rank) {
    EngineHarness job(2);
    job.Run();
    RankFailure launcher = job.Failure(0, 1);
    launcher.is_launcher = true;
    launcher.retryable_text = "connect timeout";
    launcher.step = 7;
    job.Feed(RankFailed{launcher});
    job.Fail(1, 1);
    job.Collect();
    Judgement judgement = job.Verdict(1, Retryable::kNo);
    judgement.details.front().mpi_rank = mpi_rank;
    job.Judged(judgement);
    return job.job().status != JobStatus::kStopping;
  };
  EXPECT_TRUE(survives(3));
  EXPECT_FALSE(survives(std::nullopt)) << "the text is another instance's";
}

TEST(LimitsTest, TextsOfTheJobsOwnAddUpAndAreToldToTheAgents) {
  EngineHarness job;
  job.Run();
  const StepResult first = job.Feed(RetryableErrorsAdded{{"connect timeout", "connect timeout", ""}});
  EXPECT_EQ(EngineHarness::Of<ShareRetryableErrors>(first), (std::vector{ShareRetryableErrors{{"connect timeout"}}}));
  const StepResult second = job.Feed(RetryableErrorsAdded{{"error_yyy"}});
  EXPECT_EQ(EngineHarness::Of<ShareRetryableErrors>(second),
            (std::vector{ShareRetryableErrors{{"connect timeout", "error_yyy"}}}));
  EXPECT_EQ(job.Feed(RetryableErrorsAdded{{"error_yyy"}}), StepResult{}) << "known since long";
}

TEST(LimitsTest, TextsOfTheJobsOwnHaveABound) {
  EngineHarness job;
  job.Run();
  RetryableErrorsAdded many;
  for (size_t i = 0; i <= kRetryableTextsMax; ++i) many.texts.push_back("text " + std::to_string(i));
  many.texts.push_back(std::string(kRetryableTextMaxBytes + 1, 'x'));
  const StepResult result = job.Feed(many);
  EXPECT_EQ(job.job().retryable_texts.size(), kRetryableTextsMax);
  EXPECT_TRUE(result.events.front().message.contains("'text 64'")) << result.events.front().message;
}

TEST(MessageTest, WhatTheJobSaysIsAnEventAndChangesNothing) {
  EngineHarness job;
  job.Run();
  const JobState before = job.job();
  const StepResult result = job.Feed(CustomMessageSent{InstanceIndex{1}, Rank{1}, "loss is NaN"});
  ASSERT_EQ(result.events.size(), 1u);
  EXPECT_EQ(result.events.front().type, "aimaster.custom.message");
  EXPECT_EQ(result.events.front().subject, before.instances[1].name);
  EXPECT_EQ(result.events.front().message, "rank 1: loss is NaN");
  EXPECT_TRUE(result.actions.empty());
  EXPECT_EQ(job.job(), before);
  EXPECT_EQ(job.Feed(CustomMessageSent{InstanceIndex{0}, {}, "x"}).events.front().message, "x");
}

TEST(CheckpointTest, ARoundKeepsItsNewestCheckpoint) {
  EngineHarness job;
  job.Run();
  const auto at = [](int seconds) { return Wall{std::chrono::seconds(seconds)}; };
  EXPECT_EQ(job.Feed(CheckpointTold{Round{0}, 80, at(5)}).changed_rounds, (std::vector<size_t>{0}));
  EXPECT_EQ(job.Feed(CheckpointTold{Round{0}, 70, at(4)}), StepResult{}) << "told late";
  EXPECT_EQ(job.Feed(CheckpointTold{Round{1}, 90, at(6)}), StepResult{}) << "of another round";
  EXPECT_EQ(job.job().rounds.back().checkpoint, (Checkpoint{80, at(5)}));
}

}  // namespace
}  // namespace aimaster
