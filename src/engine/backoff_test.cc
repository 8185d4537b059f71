// Waiting before a start that would be in vain, and restarts that are nobody's fault.
#include "engine/backoff.h"

#include "engine/async_harness.h"

namespace aimaster {
namespace {

using namespace std::chrono_literals;

Judgement Outside(const EngineHarness& job, std::string category) {
  Judgement judgement = job.Verdict(0, Retryable::kYes, 137);
  judgement.category = std::move(category);
  return judgement;
}

StepResult FailOf(EngineHarness& job, const std::string& category) {
  job.Fail(0, 137);
  if (job.job().phase == Phase::kCollecting) job.Collect();
  return job.Judged(Outside(job, category));
}

// How long it is from the end of all ranks to the moment in which the next start may be ordered.
Duration WaitAfter(EngineHarness& job, const std::string& category) {
  FailOf(job, category);
  job.EndedAll();
  const Moment began = job.now;
  if (job.job().phase == Phase::kStopping) {
    EXPECT_EQ(job.job().deadlines.wait, job.engine.NextDeadline());
    job.NextTick();
  }
  EXPECT_NE(job.job().phase, Phase::kStopping);
  const Duration waited = job.now.monotonic - began.monotonic;
  job.Run();
  return waited;
}

EngineHarness PatientJob() {
  EngineHarness job;
  job.spec.fault_tolerance.max_num_of_job_restart = 100;
  job.spec.fault_tolerance.max_num_of_same_error = 100;
  job.Run();
  return job;
}

TEST(BackoffTest, TheFirstFailureCostsNoWaitAndTheWaitsGrowToAMinute) {
  std::vector<int> seconds;
  for (const uint32_t failures : {0u, 1u, 2u, 3u, 4u, 7u, 8u, 9u, 4'000'000'000u}) {
    seconds.push_back(static_cast<int>(BackoffAfter(failures) / 1s));
  }
  EXPECT_EQ(seconds, (std::vector{0, 0, 1, 2, 4, 32, 60, 60, 60}));
}

TEST(BackoffTest, AJobWaitsLongerEachTimeTheWorldOutsideFailsIt) {
  EngineHarness job = PatientJob();
  for (const Duration expected : {0s, 1s, 2s, 4s, 8s}) EXPECT_EQ(WaitAfter(job, "storage"), expected);
  EXPECT_EQ(job.StagesOf(3),
            (std::vector<std::string>{"detect", "collect", "decide", "stop", "wait", "acquire", "start", "ready"}));
}

TEST(BackoffTest, ItIsSaidHowLongItWaitsAndBeforeWhat) {
  EngineHarness job = PatientJob();
  WaitAfter(job, "network");
  const StepResult result = FailOf(job, "network");
  const auto waiting = std::ranges::find(result.events, "aimaster.round.waiting", &JobEvent::type);
  ASSERT_NE(waiting, result.events.end());
  EXPECT_EQ(waiting->message, "waits 1.0 s before restart 2");
  EXPECT_TRUE(result.decisions.back().reasons.back().contains("2 times in a row"))
      << result.decisions.back().reasons.back();
}

TEST(BackoffTest, WhatLastedAMinuteOrIsTheUsersOwnFaultEndsTheRow) {
  EngineHarness job = PatientJob();
  WaitAfter(job, "system");
  WaitAfter(job, "system");
  EXPECT_EQ(WaitAfter(job, "user"), 0s);
  EXPECT_EQ(WaitAfter(job, "system"), 0s);
  EXPECT_EQ(WaitAfter(job, "system"), 1s);
  job.Pass(1min);
  EXPECT_EQ(WaitAfter(job, "system"), 0s);
}

TEST(BackoffTest, TheWaitItselfIsNoLifeOfARound) {
  EngineHarness job = PatientJob();
  for (int i = 0; i < 12; ++i) WaitAfter(job, "network");
  EXPECT_EQ(WaitAfter(job, "network"), 60s) << "the round was decided on a minute before its ranks started";
}

TEST(BackoffTest, AStopDuringTheWaitEndsTheJobAtOnce) {
  EngineHarness job = PatientJob();
  WaitAfter(job, "network");
  FailOf(job, "network");
  job.EndedAll();
  ASSERT_EQ(job.job().phase, Phase::kStopping);
  job.Feed(StopRequested{false, "test"});
  EXPECT_EQ(job.job().status, JobStatus::kStopped);
  EXPECT_FALSE(job.engine.NextDeadline());
}

TEST(BackoffTest, ANodeThatIsLostDuringTheWaitDoesNotCutItShort) {
  EngineHarness job(2, 3);
  job.Run();
  WaitAfter(job, "network");
  FailOf(job, "network");
  job.EndedAll();
  job.Feed(NodeLost{NodeIndex{1}, "gone"});
  EXPECT_EQ(job.job().phase, Phase::kStopping);
  job.NextTick();
  EXPECT_EQ(job.job().phase, Phase::kReserving) << "a spare takes its place";
}

TEST(BackoffTest, AWorkerThatCrashesInALoopWaitsAndTheOthersRunOn) {
  EngineHarness job = AsyncJob();
  job.spec.fault_tolerance.max_num_of_same_error = 100;
  job.Run();
  job.RestartAlone(1);
  for (const Duration expected : {1s, 2s, 4s}) {
    job.FailAlone(1);
    job.Ended(1);
    ASSERT_EQ(RenewalOf(job.job().instances[1]), Renewal::kPausing);
    const Moment began = job.now;
    const StepResult started = job.NextTick();
    EXPECT_EQ(job.now.monotonic - began.monotonic, expected);
    ASSERT_EQ(Of<StartInstance>(started).size(), 1u);
    job.Feed(InstanceStarted{InstanceIndex{1}, job.AttemptOf(1)});
    job.Feed(InstanceReady{InstanceIndex{1}, job.AttemptOf(1)});
  }
  ExpectUntouched(job, {0, 2});
  job.Pass(1min);
  job.FailAlone(1);
  EXPECT_EQ(Of<StartInstance>(job.Ended(1)).size(), 1u) << "it had lasted";
}

TEST(BackoffTest, AJobThatIsStoppedWhileAWorkerWaitsEnds) {
  EngineHarness job = AsyncJob(2);
  job.Run();
  job.RestartAlone(1);
  job.FailAlone(1);
  job.Ended(1);
  ASSERT_EQ(RenewalOf(job.job().instances[1]), Renewal::kPausing);
  job.Feed(StopRequested{true, "test"});
  job.Ended(0);
  EXPECT_EQ(job.job().status, JobStatus::kStopped);
  EXPECT_FALSE(job.engine.NextDeadline());
}

TEST(PreemptionTest, ItCountsForNoLimit) {
  EngineHarness job;
  job.spec.fault_tolerance.max_num_of_job_restart = 1;
  job.spec.fault_tolerance.max_num_of_same_error = 1;
  job.spec.fault_tolerance.max_tolerated_failure_rate = 0;
  job.spec.fault_tolerance.no_progress_limit = 1;
  job.Run();
  for (int i = 0; i < 4; ++i) WaitAfter(job, "preemption");
  EXPECT_EQ(job.job().restarts, 4u);
  EXPECT_EQ(job.job().free_restarts, 4u);
  EXPECT_EQ(job.job().same_error.size(), 0u);
  EXPECT_TRUE(job.job().records.back().reason.starts_with("restart 4, which counts for no limit"))
      << job.job().records.back().reason;
}

TEST(PreemptionTest, TheRestartsThatMayBeUsedAreAllStillThere) {
  EngineHarness job;
  job.spec.fault_tolerance.max_num_of_job_restart = 1;
  job.Run();
  WaitAfter(job, "preemption");
  WaitAfter(job, "user");
  EXPECT_EQ(job.job().records.back().reason, "restart 2 of at most 2: boom");
  FailOf(job, "user");
  job.EndedAll();
  EXPECT_EQ(job.job().status, JobStatus::kFailed);
  EXPECT_TRUE(job.job().reason_message.contains("restarted 1 time (1 after pre-emptions are not counted)"))
      << job.job().reason_message;
}

TEST(PreemptionTest, WhatSaysSoAgainAndAgainAsSoonAsItRunsIsCharged) {
  EngineHarness job;
  job.spec.fault_tolerance.max_num_of_job_restart = 1;
  job.Run();
  for (uint32_t i = 0; i < kFreeInARowMax + 1; ++i) WaitAfter(job, "preemption");
  EXPECT_EQ(job.job().restarts, kFreeInARowMax + 1);
  EXPECT_EQ(job.job().free_restarts, kFreeInARowMax);
  FailOf(job, "preemption");
  job.EndedAll();
  EXPECT_EQ(job.job().status, JobStatus::kFailed);
}

TEST(PreemptionTest, PolicyAndPermissionHoldAllTheSame) {
  EngineHarness never;
  never.spec.fault_tolerance.fault_tolerant_policy = FaultTolerantPolicy::kNever;
  EngineHarness forbidden;
  forbidden.spec.fault_tolerance.enable_job_restart = false;
  for (EngineHarness* job : {&never, &forbidden}) {
    job->Run();
    FailOf(*job, "preemption");
    job->EndedAll();
    EXPECT_EQ(job->job().status, JobStatus::kFailed);
  }
}

TEST(PreemptionTest, AWorkerAloneIsNotChargedEither) {
  EngineHarness job = AsyncJob();
  job.spec.fault_tolerance.max_num_of_same_error = 1;
  job.Run();
  for (int i = 0; i < 3; ++i) {
    job.Fail(0, 143);
    job.Collect();
    job.JudgedApart({Outside(job, "preemption")});
    job.Ended(0);
    if (RenewalOf(job.job().instances[0]) == Renewal::kPausing) job.NextTick();
    job.StartedAll();
    job.ReadyAll();
  }
  EXPECT_EQ(job.job().records.size(), 3u);
  EXPECT_EQ(job.job().phase, Phase::kRunning);
}

}  // namespace
}  // namespace aimaster
