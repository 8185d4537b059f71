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

}  // namespace
}  // namespace aimaster
