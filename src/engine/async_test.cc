// Async jobs: a worker fails and is restarted alone; everybody else does not notice.
#include "engine/async_harness.h"

namespace aimaster {
namespace {

using Strings = std::vector<std::string>;

TEST(AsyncTest, AFailedWorkerIsStoppedAndStartedAgainAlone) {
  EngineHarness job = AsyncJob();
  job.Run();
  job.Pass(std::chrono::minutes{5});
  job.Fail(1, 137);
  job.Collect();
  ASSERT_EQ(Of<JudgeFailure>(job.last).size(), 1u);
  EXPECT_TRUE(Of<JudgeFailure>(job.last)[0].apart);
  const auto stops = Of<StopInstance>(job.JudgedApart({job.Verdict(1, Retryable::kYes, 137)}));
  ASSERT_EQ(stops.size(), 1u) << "what may be left of it";
  EXPECT_EQ(stops[0].instance, InstanceIndex{1});
  EXPECT_EQ(job.last.decisions.at(0).kind, "RestartInstance");
  EXPECT_EQ(job.job().status, JobStatus::kRunning);
  EXPECT_TRUE(Of<StartInstance>(job.last).empty()) << "nothing starts while something may be left";
  const auto starts = Of<StartInstance>(job.Ended(1));
  ASSERT_EQ(starts.size(), 1u);
  EXPECT_EQ(starts[0].instance, InstanceIndex{1});
  EXPECT_EQ(starts[0].attempt, Attempt{1});
  EXPECT_EQ(starts[0].round, Round{0});
  EXPECT_EQ(starts[0].restart_count, 1u) << "its program may ask whether it is a restart";
  EXPECT_EQ(starts[0].master_port, 23456) << "the others know no other";
  job.Pass(std::chrono::seconds{1});
  job.Feed(InstanceStarted{InstanceIndex{1}, Attempt{1}});
  job.Feed(InstanceReady{InstanceIndex{1}, Attempt{1}});
  ExpectUntouched(job, {0, 2});
  EXPECT_EQ(job.job().restarts, 0u);
  EXPECT_EQ(job.job().rounds.size(), 1u);
  EXPECT_EQ(job.StagesOf(0), (Strings{"acquire", "start", "ready"}));
  EXPECT_EQ(job.engine.NextDeadline(), std::nullopt) << "all is well again";
  const RestartRecord& record = job.job().records.at(0);
  EXPECT_EQ(record.scope, RestartScope::kInstance);
  EXPECT_EQ(record.restarts, 1u);
  EXPECT_EQ(record.result, RestartResult::kRestarted);
  EXPECT_EQ(record.instance_name, "dlc0123456789abc-worker-1");
  EXPECT_EQ(record.node_name, "node-0");
  EXPECT_EQ(record.judgement.error_code, 137);
  EXPECT_GE(record.duration, std::chrono::seconds{1});
}

TEST(AsyncTest, AJobSucceedsAfterItsWorkersWereRestartedAlone) {
  EngineHarness job = AsyncJob(2);
  job.Run();
  job.Feed(RankSucceeded{InstanceIndex{0}, Attempt{0}, Rank{0}});
  job.Ended(0);
  job.RestartAlone(1);
  job.Feed(RankSucceeded{InstanceIndex{1}, Attempt{1}, Rank{1}});
  job.Ended(1);
  EXPECT_EQ(job.job().status, JobStatus::kSucceeded);
}

TEST(AsyncTest, TwoThatDieTogetherAreEachJudgedAndRestarted) {
  EngineHarness job = AsyncJob();
  job.Run();
  job.Fail(0, 137);
  job.Fail(2, 1);
  job.Collect();
  Judgement followed = job.Verdict(2);
  followed.is_consequence = true;
  job.JudgedApart({job.Verdict(0, Retryable::kYes, 137), followed});
  EXPECT_EQ(Of<StopInstance>(job.last).size(), 2u);
  EXPECT_EQ(job.last.decisions.size(), 2u);
  EXPECT_EQ(job.job().records.size(), 2u);
  job.Ended(2);
  job.Ended(0);
  EXPECT_EQ(job.AttemptOf(0), Attempt{1});
  EXPECT_EQ(job.AttemptOf(2), Attempt{1});
  ExpectUntouched(job, {1});
  EXPECT_EQ(job.job().same_error.size(), 1u) << "a consequence counts for no limit";
  EXPECT_EQ(job.job().failed_workers.size(), 1u);
}

TEST(AsyncTest, WhoFailsWhileAnotherIsJudgedIsJudgedNext) {
  EngineHarness job = AsyncJob();
  job.Run();
  job.Fail(0);
  job.Collect();
  ASSERT_EQ(job.job().phase, Phase::kJudging);
  job.Fail(2, 9);
  job.Ended(2);
  job.JudgedApart({job.Verdict(0)});
  EXPECT_EQ(job.job().phase, Phase::kCollecting) << "it is not forgotten";
  ASSERT_EQ(job.job().failures.size(), 1u);
  EXPECT_EQ(job.job().failures[0].rank, Rank{2});
  job.Ended(0);
  EXPECT_EQ(job.AttemptOf(0), Attempt{1}) << "nor does the first wait for it";
  job.Collect();
  EXPECT_EQ(Of<StartInstance>(job.JudgedApart({job.Verdict(2, Retryable::kYes, 9)})).size(), 1u) << "it has ended";
  EXPECT_EQ(job.job().phase, Phase::kRunning);
  EXPECT_EQ(job.job().records.size(), 2u);
  ExpectUntouched(job, {1});
}

TEST(AsyncTest, WhoFailsWhileAnotherIsRestartedIsCollectedByItself) {
  EngineHarness job = AsyncJob();
  job.Run();
  job.FailAlone(0);
  EXPECT_EQ(Of<CollectEvidence>(job.Fail(1)).size(), 1u);
  EXPECT_EQ(job.job().failures.size(), 1u);
  job.Ended(0);
  EXPECT_EQ(job.AttemptOf(0), Attempt{1}) << "goes on meanwhile";
  EXPECT_EQ(job.job().phase, Phase::kCollecting);
}

TEST(AsyncTest, WhatDiesOfOurStopIsNoFailure) {
  EngineHarness job = AsyncJob(2);
  job.spec.roles = {{Role::kWorker, 2, 2}};
  job.Run();
  job.FailAlone(0);
  RankFailure stopped = job.Failure(1, 0);
  stopped.exit = RankExit{.signal = 15};
  stopped.stopped_by_us = true;
  job.Feed(RankFailed{stopped});
  EXPECT_EQ(job.job().phase, Phase::kRunning);
  EXPECT_EQ(Of<StartInstance>(job.Ended(0)).size(), 1u);
  EXPECT_EQ(job.job().records.size(), 1u);
}

TEST(AsyncTest, ARankThatFailsLaterBelongsToTheFailureOfItsInstance) {
  EngineHarness job = AsyncJob(2);
  job.spec.roles = {{Role::kWorker, 2, 2}};
  job.Run();
  job.Fail(0);
  job.Collect();
  job.Fail(1);  // the other rank of the same instance, while it is judged
  job.JudgedApart({job.Verdict(0)});
  EXPECT_EQ(job.job().phase, Phase::kRunning);
  EXPECT_TRUE(job.job().failures.empty());
}

TEST(AsyncTest, AnErrorThatIsNotRetryableEndsTheJob) {
  EngineHarness job = AsyncJob();
  job.Run();
  job.FailAlone(1, Retryable::kNo, 7);
  EXPECT_EQ(Of<StopInstance>(job.last).size(), 3u);
  job.EndedAll();
  EXPECT_EQ(job.job().status, JobStatus::kFailed);
  EXPECT_EQ(job.job().exit_code, 7);
  EXPECT_TRUE(job.job().records.empty());
}

TEST(AsyncTest, OneMistakeAmongSeveralFailuresEndsTheJobBeforeAnythingIsRestarted) {
  EngineHarness job = AsyncJob();
  job.Run();
  job.Fail(0, 137);
  job.Fail(1, 1);
  job.Collect();
  job.JudgedApart({job.Verdict(0, Retryable::kYes, 137), job.Verdict(1, Retryable::kNo)});
  EXPECT_EQ(job.job().stop_purpose, StopPurpose::kFail);
  EXPECT_TRUE(job.job().records.empty());
  EXPECT_EQ(job.last.decisions.size(), 1u);
}

TEST(AsyncTest, AFailedPsRestartsTheJobWhereThatIsAllowed) {
  EngineHarness job = ParameterServerJob();
  job.spec.fault_tolerance.enable_job_restart = true;
  job.Run();
  job.RestartAlone(0);
  job.Fail(1);  // it lost the ps
  job.Fail(2);
  job.Collect();
  EXPECT_FALSE(Of<JudgeFailure>(job.last).at(0).apart) << "one failure of the job";
  job.Judged(job.Verdict(2));
  EXPECT_EQ(Of<StopInstance>(job.last).size(), 3u);
  EXPECT_EQ(job.last.decisions.at(0).kind, "Restart");
  EXPECT_TRUE(std::ranges::any_of(job.last.decisions[0].reasons, [](const std::string& reason) {
    return reason == "dlc0123456789abc-ps-0 has failed, and a ps can't be restarted alone";
  }));
  job.EndedAll();
  const auto starts = Of<StartInstance>(job.Port(4321));
  ASSERT_EQ(starts.size(), 3u);
  EXPECT_EQ(starts[0].attempt, Attempt{2});
  EXPECT_EQ(starts[0].restart_count, 2u) << "one alone, one with the job";
  EXPECT_EQ(starts[1].restart_count, 1u);
  EXPECT_EQ(job.job().restarts, 1u);
  job.StartedAll();
  job.ReadyAll();
  ASSERT_EQ(job.job().records.size(), 2u);
  EXPECT_EQ(job.job().records[1].scope, RestartScope::kJob);
  EXPECT_EQ(job.job().records[1].restarts, 1u);
  EXPECT_EQ(job.job().records[1].result, RestartResult::kRestarted);
  EXPECT_EQ(job.StagesOf(1), (Strings{"detect", "collect", "decide", "stop", "acquire", "start", "ready"}));
  for (const StageTime& stage : job.job().rounds[1].stages) EXPECT_TRUE(stage.duration) << Name(stage.stage);
}

TEST(AsyncTest, AFailedPsEndsTheJobWhereItMayNotBeRestarted) {
  EngineHarness job = ParameterServerJob();
  job.Run();
  job.Fail(2, 3);
  job.Collect();
  job.Judged(job.Verdict(2, Retryable::kYes, 3));
  job.EndedAll();
  EXPECT_EQ(job.job().status, JobStatus::kFailed);
  EXPECT_EQ(job.job().exit_code, 3);
  EXPECT_TRUE(job.job().reason_message.contains("--enable-job-restart=False"));
}

TEST(AsyncTest, WorkersAndEvaluatorsAloneAreRestartedAlone) {
  for (const Role role : {Role::kMaster, Role::kWorker, Role::kPs, Role::kChief, Role::kEvaluator, Role::kLauncher}) {
    EngineHarness job = AsyncJob(1);
    job.spec.roles.push_back({role == Role::kWorker ? Role::kChief : role, 1, 1});
    if (role == Role::kWorker) job.spec.roles = {{Role::kWorker, 2, 1}};
    job.Run();
    job.Fail(1);
    job.Collect();
    const bool alone = role == Role::kWorker || role == Role::kEvaluator;
    EXPECT_EQ(Of<JudgeFailure>(job.last).at(0).apart, alone) << Name(role);
  }
}

TEST(AsyncTest, APsThatFailsWhileAWorkerIsJudgedIsNotRestartedAlone) {
  EngineHarness job = ParameterServerJob();
  job.spec.fault_tolerance.enable_job_restart = true;
  job.Run();
  job.Fail(0);
  job.Collect();
  job.Fail(2);
  // The detector may have seen both already.
  job.JudgedApart({job.Verdict(0), job.Verdict(2)});
  EXPECT_EQ(Of<StopInstance>(job.last).size(), 1u);
  EXPECT_EQ(job.job().phase, Phase::kCollecting);
  job.Collect();
  EXPECT_FALSE(Of<JudgeFailure>(job.last).at(0).apart);
  job.Judged(job.Verdict(2));
  EXPECT_EQ(job.job().status, JobStatus::kRestarting);
  EXPECT_EQ(job.job().records.at(0).result, RestartResult::kFailed) << "the worker's restart came to nothing";
  EXPECT_EQ(job.job().records.at(1).result, RestartResult::kRestarting);
}

TEST(AsyncTest, WhenAllWorkersHaveSucceededThePsIsStoppedAndNotFailed) {
  for (const ExecutionMode mode : {ExecutionMode::kAsync, ExecutionMode::kSync}) {
    EngineHarness job = ParameterServerJob();
    job.spec.fault_tolerance.execution_mode = mode;
    job.Run();
    for (uint32_t i : {0u, 1u}) job.Feed(RankSucceeded{InstanceIndex{i}, Attempt{0}, Rank{i}});
    job.Ended(0);
    const auto stops = Of<StopInstance>(job.Ended(1));
    ASSERT_EQ(stops.size(), 1u);
    EXPECT_EQ(stops[0].instance, InstanceIndex{2});
    RankFailure stopped = job.Failure(2, 0);
    stopped.exit = RankExit{.signal = 15};
    stopped.stopped_by_us = true;
    job.Feed(RankFailed{stopped});
    job.Ended(2);
    EXPECT_EQ(job.job().status, JobStatus::kSucceeded);
    EXPECT_EQ(job.job().exit_code, 0);
    EXPECT_EQ(job.job().instances[2].status, InstanceStatus::kStopped);
    EXPECT_EQ(job.job().rounds[0].result, RoundResult::kSucceeded);
  }
}

TEST(AsyncTest, APersonsStopWinsOverARestart) {
  EngineHarness job = AsyncJob(2);
  job.Run();
  job.FailAlone(0);
  EXPECT_EQ(Of<StopInstance>(job.Feed(StopRequested{false, "Ctrl-C"})).size(), 2u);
  job.Ended(0);
  EXPECT_TRUE(Of<StartInstance>(job.last).empty());
  job.Ended(1);
  EXPECT_EQ(job.job().status, JobStatus::kStopped);
  EXPECT_EQ(job.job().records.at(0).result, RestartResult::kStopped);
}

// ---- starts and stops that fail ----

TEST(AsyncTest, AWorkerThatFailsWhileTheRoundStartsHoldsNobodyUp) {
  EngineHarness job = AsyncJob(2);
  job.Submit();
  job.JoinAll();
  job.Port();
  job.Feed(InstanceStarted{InstanceIndex{0}, Attempt{0}});
  job.FailAlone(0);
  job.Feed(InstanceStarted{InstanceIndex{1}, Attempt{0}});
  job.Ended(0);
  job.Feed(InstanceStarted{InstanceIndex{0}, Attempt{1}});
  EXPECT_EQ(job.job().status, JobStatus::kRunning);
  job.ReadyAll();
  for (const StageTime& stage : job.job().rounds[0].stages) EXPECT_TRUE(stage.duration) << Name(stage.stage);
  EXPECT_EQ(job.engine.NextDeadline(), std::nullopt);
}

TEST(AsyncTest, WhatBecameReadyWhileAnotherWasJudgedCounts) {
  EngineHarness job = AsyncJob(2);
  job.Submit();
  job.JoinAll();
  job.Port();
  job.Feed(InstanceStarted{InstanceIndex{0}, Attempt{0}});
  job.Fail(0);
  job.Collect();
  job.Feed(InstanceStarted{InstanceIndex{1}, Attempt{0}});
  EXPECT_NE(job.job().status, JobStatus::kRunning);
  job.JudgedApart({job.Verdict(0)});
  EXPECT_EQ(job.job().status, JobStatus::kRunning) << "both had started";
}

TEST(AsyncTest, AWorkerThatNeverStartsIsRestartedAloneAndAPsWithTheJob) {
  EngineHarness job = ParameterServerJob();
  job.spec.fault_tolerance.enable_job_restart = true;
  job.Submit();
  job.JoinAll();
  job.Port();
  for (uint32_t i : {1u, 2u}) job.Feed(InstanceStarted{InstanceIndex{i}, Attempt{0}});
  job.NextTick();
  EXPECT_EQ(job.job().records.at(0).judgement.fault, "StartTimeout");
  EXPECT_EQ(job.job().records.at(0).scope, RestartScope::kInstance);
  EXPECT_EQ(Of<StopInstance>(job.last).size(), 1u);
  job.Feed(StopRequested{true, "test"});

  EngineHarness other = ParameterServerJob();
  other.spec.fault_tolerance.enable_job_restart = true;
  other.Submit();
  other.JoinAll();
  other.Port();
  other.Feed(InstanceStarted{InstanceIndex{1}, Attempt{0}});
  other.NextTick();
  EXPECT_EQ(other.job().status, JobStatus::kRestarting);
  ASSERT_EQ(other.job().records.size(), 1u);
  EXPECT_EQ(other.job().records[0].instance_name, "dlc0123456789abc-ps-0");
}

TEST(AsyncTest, ARestartedWorkerThatNeverPrintsIsLeftAlone) {
  EngineHarness job = AsyncJob(2);
  job.Run();
  job.FailAlone(0);
  job.Ended(0);
  job.Feed(InstanceStarted{InstanceIndex{0}, Attempt{1}});
  job.NextTick();
  EXPECT_EQ(job.job().records.at(0).result, RestartResult::kRestarted);
  EXPECT_EQ(job.engine.NextDeadline(), std::nullopt);
}

TEST(AsyncTest, ARestartThatFailsBeforeItIsReadyIsNoSuccess) {
  EngineHarness job = AsyncJob(2);
  job.Run();
  job.FailAlone(0);
  job.Ended(0);
  job.Feed(InstanceStarted{InstanceIndex{0}, Attempt{1}});
  job.FailAlone(0);
  ASSERT_EQ(job.job().records.size(), 2u);
  EXPECT_EQ(job.job().records[0].result, RestartResult::kFailed);
  EXPECT_EQ(job.job().records[1].restarts, 2u);
}

TEST(AsyncTest, AWorkerThatCannotBeKilledFailsTheJobInTheEnd) {
  EngineHarness job = AsyncJob(2);
  job.Run();
  job.FailAlone(0);
  const Moment began = job.now;
  while (job.job().phase == Phase::kRunning) {
    job.NextTick();
    if (job.job().phase != Phase::kRunning) break;
    ASSERT_EQ(Of<StopInstance>(job.last).size(), 1u);
    EXPECT_TRUE(Of<StopInstance>(job.last)[0].at_once);
  }
  EXPECT_EQ(job.now.monotonic - began.monotonic, std::chrono::seconds{100}) << "grace, two recoveries, half a minute";
  EXPECT_EQ(job.job().reason_code, "Unkillable");
  EXPECT_EQ(Of<StopInstance>(job.last).size(), 2u);
  job.EndedAll();
  EXPECT_EQ(job.job().status, JobStatus::kFailed);
}

TEST(AsyncTest, ATakenPortAtTheStartOfTheRoundIsTheRoundsAffairLaterItIsTheWorkers) {
  EngineHarness job = AsyncJob(2);
  job.Run();
  Judgement taken = job.Verdict(0);
  taken.address_in_use = true;
  job.Fail(0);
  job.Collect();
  job.JudgedApart({taken});
  EXPECT_EQ(job.last.decisions.at(0).kind, "RetryStart");
  EXPECT_EQ(Of<StopInstance>(job.last).size(), 2u) << "the others have the same port";
  job.EndedAll();
  job.Run();
  job.RestartAlone(0);
  job.Fail(0);
  job.Collect();
  job.JudgedApart({taken});
  EXPECT_EQ(job.last.decisions.at(0).kind, "RestartInstance");
}

TEST(AsyncRecoveryTest, WhatIsOutstandingIsEachInstancesOwn) {
  EngineHarness job = AsyncJob(4);
  job.Run();
  job.FailAlone(0);
  job.FailAlone(1);
  job.Ended(1);
  job.Fail(2);
  const std::vector<Action> outstanding = job.engine.Outstanding();
  ASSERT_EQ(outstanding.size(), 3u);
  EXPECT_EQ(std::get<StopInstance>(outstanding[0]).instance, InstanceIndex{0});
  EXPECT_EQ(std::get<StartInstance>(outstanding[1]).instance, InstanceIndex{1});
  EXPECT_TRUE(std::holds_alternative<CollectEvidence>(outstanding[2]));
  job.Collect();
  EXPECT_TRUE(std::holds_alternative<JudgeFailure>(job.engine.Outstanding().back()));
  EXPECT_EQ(job.engine.Outstanding().size(), 3u);
}

}  // namespace
}  // namespace aimaster
