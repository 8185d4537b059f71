// The stories of jobs: how one comes up, fails, is restarted, and ends.
#include "engine/engine.h"

#include "engine/engine_harness.h"

namespace aimaster {
namespace {

using Strings = std::vector<std::string>;

TEST(EngineTest, AHealthyJobStartsRunsAndSucceeds) {
  EngineHarness job(2);
  EXPECT_EQ(EngineHarness::Of<AcquireNodes>(job.Submit()).size(), 1u);
  EXPECT_EQ(job.job().status, JobStatus::kEnvPreparing);
  job.Join(0);
  ASSERT_EQ(EngineHarness::Of<ReservePort>(job.last).size(), 1u);
  EXPECT_TRUE(EngineHarness::Of<ReservePort>(job.last)[0].hold);
  const auto starts = EngineHarness::Of<StartInstance>(job.Port(1234));
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_EQ(starts[1].master_port, 1234);
  EXPECT_EQ(starts[1].master_address, "10.0.0.0");
  EXPECT_EQ(starts[1].attempt, Attempt{0});
  job.StartedAll();
  EXPECT_EQ(job.job().status, JobStatus::kRunning);
  job.ReadyAll();
  EXPECT_EQ(job.engine.NextDeadline(), std::nullopt) << "a healthy job needs no clock";
  for (uint32_t i : {0u, 1u}) job.Feed(RankSucceeded{InstanceIndex{i}, Attempt{0}, Rank{i}});
  job.Ended(0);
  EXPECT_EQ(job.job().status, JobStatus::kRunning) << "the other one is still there";
  EXPECT_EQ(EngineHarness::Of<FinishJob>(job.Ended(1)).size(), 1u);
  EXPECT_EQ(job.job().status, JobStatus::kSucceeded);
  EXPECT_EQ(job.job().exit_code, 0);
  EXPECT_EQ(job.StagesOf(0), (Strings{"acquire", "start", "ready"}));
  EXPECT_EQ(job.job().rounds[0].result, RoundResult::kSucceeded);
}

TEST(EngineTest, AKilledRankRestartsTheWholeJobWithTheSameRanksAndANewPort) {
  EngineHarness job(3);
  job.Run();
  job.Pass(std::chrono::minutes{5});
  EXPECT_EQ(EngineHarness::Of<CollectEvidence>(job.Fail(1, 137)).size(), 1u);
  job.Pass(std::chrono::milliseconds{20});
  job.Collect();
  ASSERT_EQ(EngineHarness::Of<JudgeFailure>(job.last).size(), 1u);
  EXPECT_EQ(EngineHarness::Of<StopInstance>(job.Judged(job.Verdict(1, Retryable::kYes, 137))).size(), 3u);
  EXPECT_EQ(job.job().status, JobStatus::kRestarting);
  EXPECT_EQ(job.job().round, Round{1});
  EXPECT_EQ(job.last.decisions.size(), 1u);
  EXPECT_EQ(job.last.decisions[0].reasons.front(), "rank 1 said boom");
  job.Ended(0);
  job.Ended(2);
  EXPECT_TRUE(EngineHarness::Of<ReservePort>(job.last).empty()) << "nothing starts while something may be left";
  EXPECT_EQ(EngineHarness::Of<ReservePort>(job.Ended(1)).size(), 1u);
  const auto starts = EngineHarness::Of<StartInstance>(job.Port(4321));
  ASSERT_EQ(starts.size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(starts[i].attempt, Attempt{1});
    EXPECT_EQ(starts[i].round, Round{1});
    EXPECT_EQ(starts[i].restart_count, 1u);
    EXPECT_EQ(starts[i].master_port, 4321);
    EXPECT_EQ(job.job().instances[i].first_rank, Rank{i});
  }
  EXPECT_EQ(job.job().records[0].result, RestartResult::kRestarting);
  job.Pass(std::chrono::seconds{1});
  job.StartedAll();
  job.ReadyAll();
  const RestartRecord& record = job.job().records.at(0);
  EXPECT_EQ(record.result, RestartResult::kRestarted);
  EXPECT_EQ(record.restarts, 1u);
  EXPECT_EQ(record.round, Round{0});
  EXPECT_EQ(record.node_name, "node-0");
  EXPECT_EQ(record.instance_name, "dlc0123456789abc-worker-1");
  EXPECT_EQ(record.judgement.error_code, 137);
  EXPECT_GE(record.duration, std::chrono::seconds{1});
  EXPECT_EQ(job.StagesOf(1), (Strings{"detect", "collect", "decide", "stop", "acquire", "start", "ready"}));
  for (const StageTime& stage : job.job().rounds[1].stages) EXPECT_TRUE(stage.duration) << Name(stage.stage);
}

TEST(EngineTest, ARestartThatFailsBeforeItIsReadyIsNoSuccess) {
  EngineHarness job(2);
  job.Run();
  job.FailAndJudge(0);
  job.EndedAll();
  job.Port();
  job.StartedAll();
  job.FailAndJudge(0);
  ASSERT_EQ(job.job().records.size(), 2u);
  EXPECT_EQ(job.job().records[0].result, RestartResult::kFailed);
  EXPECT_TRUE(job.job().records[0].duration);
  for (const StageTime& stage : job.job().rounds[1].stages) EXPECT_TRUE(stage.duration) << Name(stage.stage);
  EXPECT_EQ(job.job().records[1].result, RestartResult::kRestarting);
}

TEST(EngineTest, WithoutPermissionAFailureEndsTheJobWithTheRootsExitCode) {
  EngineHarness job(2);
  job.spec.fault_tolerance.enable_job_restart = false;
  job.Run();
  job.FailAndJudge(0, Retryable::kYes, 7);
  EXPECT_EQ(job.job().status, JobStatus::kStopping);
  job.EndedAll();
  EXPECT_EQ(job.job().status, JobStatus::kFailed);
  EXPECT_EQ(job.job().exit_code, 7);
  EXPECT_TRUE(job.job().reason_message.contains("--enable-job-restart=False"));
  EXPECT_TRUE(job.job().records.empty());
  EXPECT_EQ(job.StagesOf(0), (Strings{"acquire", "start", "ready", "detect", "collect", "decide", "stop"}));
}

TEST(EngineTest, TheFailureOfTheOnlyRankIsJudgedWithoutWaiting) {
  EngineHarness job(1);
  job.Run();
  EXPECT_EQ(EngineHarness::Of<JudgeFailure>(job.Fail(0)).size(), 1u);
}

TEST(EngineTest, TheWindowStaysOpenWhileACoreIsBeingWritten) {
  EngineHarness job(3);
  job.Run();
  job.Fail(1);
  job.Feed(EvidenceCollected{job.job().collection, NodeIndex{0}, {Rank{0}}});
  job.NextTick();  // the window is over
  EXPECT_EQ(job.job().phase, Phase::kCollecting);
  job.Pass(std::chrono::seconds{30});
  job.Fail(0, 139);
  EXPECT_EQ(job.job().phase, Phase::kJudging);
  EXPECT_EQ(job.job().failures.size(), 2u);
}

TEST(EngineTest, TheWindowClosesAtTheCapWhoeverIsWaitedFor) {
  EngineHarness job(3);
  job.Run();
  job.Fail(1);
  job.NextTick();
  EXPECT_EQ(job.job().phase, Phase::kCollecting) << "the node has not answered";
  job.NextTick();
  EXPECT_EQ(job.job().phase, Phase::kJudging);
}

TEST(EngineTest, ATakenPortIsAnotherStartNotARestart) {
  EngineHarness job(2);
  job.Run();
  job.Fail(0);
  job.Collect();
  Judgement judgement = job.Verdict(0, Retryable::kNo);
  judgement.address_in_use = true;
  job.Judged(judgement);
  EXPECT_EQ(job.last.decisions.at(0).kind, "RetryStart");
  job.EndedAll();
  ASSERT_EQ(EngineHarness::Of<ReservePort>(job.last).size(), 1u);
  EXPECT_FALSE(EngineHarness::Of<ReservePort>(job.last)[0].hold) << "we may have been in the way ourselves";
  const auto starts = EngineHarness::Of<StartInstance>(job.Port());
  EXPECT_EQ(starts.at(0).round, Round{0});
  EXPECT_EQ(starts.at(0).attempt, Attempt{1});
  EXPECT_EQ(job.job().restarts, 0u);
  EXPECT_TRUE(job.job().records.empty());
}

TEST(EngineTest, TheStartIsTriedAgainOnlySoOften) {
  EngineHarness job(1);
  job.spec.fault_tolerance.enable_job_restart = false;
  job.Run();
  for (int starts = 0; starts < 6; ++starts) {
    ASSERT_EQ(job.job().phase, Phase::kRunning);
    job.Fail(0);
    Judgement judgement = job.Verdict(0, Retryable::kNo);
    judgement.address_in_use = true;
    job.Judged(judgement);
    job.Ended(0);
    if (job.job().phase == Phase::kReserving) job.Port();
  }
  EXPECT_EQ(job.job().status, JobStatus::kFailed);
}

TEST(EngineTest, APortThatCannotBeReservedIsAskedForAgainThenTheStartFails) {
  EngineHarness job(1);
  job.spec.fault_tolerance.enable_job_restart = false;
  job.Submit();
  job.JoinAll();
  for (int refusals = 0; refusals < 5; ++refusals) {
    ASSERT_EQ(job.job().phase, Phase::kReserving);
    job.Feed(PortRefused{job.job().reservation, "none free"});
  }
  EXPECT_EQ(job.job().status, JobStatus::kFailed);
  EXPECT_EQ(job.job().exit_code, 1);
}

TEST(EngineTest, APortAskedForAgainAfterARefusalIsNotHeldNeitherByASuccessor) {
  EngineHarness job(1);
  job.Submit();
  job.JoinAll();
  const auto again = EngineHarness::Of<ReservePort>(job.Feed(PortRefused{job.job().reservation, "none free"}));
  ASSERT_EQ(again.size(), 1u);
  EXPECT_FALSE(again[0].hold);
  EXPECT_EQ(std::get<ReservePort>(job.engine.Outstanding().at(0)), again[0]);
}

TEST(EngineTest, AnOldPortAnswerIsIgnored) {
  EngineHarness job(1);
  job.Submit();
  job.JoinAll();
  EXPECT_TRUE(job.Feed(PortReserved{job.job().reservation + 1, 99}).actions.empty());
  EXPECT_EQ(job.job().phase, Phase::kReserving);
}

TEST(EngineTest, InstancesThatNeverStartFailTheStart) {
  EngineHarness job(2);
  job.Submit();
  job.JoinAll();
  job.Port();
  job.NextTick();
  EXPECT_EQ(job.job().status, JobStatus::kRestarting);
  EXPECT_EQ(job.job().records.at(0).judgement.fault, "StartTimeout");
}

TEST(EngineTest, RanksThatNeverPrintAreLeftAlone) {
  EngineHarness job(2);
  job.Submit();
  job.JoinAll();
  job.Port();
  job.StartedAll();
  job.NextTick();
  EXPECT_EQ(job.job().status, JobStatus::kRunning);
  EXPECT_TRUE(job.job().rounds[0].stages.back().duration) << "the stage is bounded";
  EXPECT_EQ(job.engine.NextDeadline(), std::nullopt);
}

TEST(EngineTest, ANodeThatNeverComesFailsTheStart) {
  EngineHarness job(2, 2);
  job.spec.fault_tolerance.enable_job_restart = false;
  job.Submit();
  job.Join(0);
  job.NextTick();
  EXPECT_EQ(job.job().status, JobStatus::kFailed);
  EXPECT_EQ(job.job().reason_code, "NodeTimeout");
}

TEST(EngineTest, AJobThatFailedNeverExitsWithZero) {
  EngineHarness job(2);
  job.spec.fault_tolerance.enable_job_restart = false;
  job.Run();
  RankFailure stopped = job.Failure(0, 0);
  stopped.stopped_by_us = true;
  job.Feed(RankFailed{stopped});
  job.Collect();
  job.Judged(job.Verdict(0, Retryable::kNo, 0));
  job.EndedAll();
  EXPECT_EQ(job.job().status, JobStatus::kFailed);
  EXPECT_EQ(job.job().exit_code, 1);
  EXPECT_EQ(job.job().instances[0].status, InstanceStatus::kStopped);
}

TEST(EngineTest, ACommandThatCannotBeExecutedIsNeverRetried) {
  EngineHarness job(2);
  job.spec.fault_tolerance.fault_tolerant_policy = FaultTolerantPolicy::kOnFailure;
  job.Run();
  job.Fail(0, 127);
  job.Collect();
  Judgement judgement = job.Verdict(0, Retryable::kNo, 127);
  judgement.never_started = true;
  job.Judged(judgement);
  job.EndedAll();
  EXPECT_EQ(job.job().status, JobStatus::kFailed);
  EXPECT_EQ(job.job().exit_code, 127);
}

TEST(EngineStopTest, AStopWithGraceThenOneWithout) {
  EngineHarness job(2);
  job.Run();
  auto stops = EngineHarness::Of<StopInstance>(job.Feed(StopRequested{false, "Ctrl-C"}));
  ASSERT_EQ(stops.size(), 2u);
  EXPECT_FALSE(stops[0].at_once);
  EXPECT_EQ(job.job().status, JobStatus::kStopping);
  stops = EngineHarness::Of<StopInstance>(job.Feed(StopRequested{true, "Ctrl-C"}));
  ASSERT_EQ(stops.size(), 2u);
  EXPECT_TRUE(stops[0].at_once);
  EXPECT_TRUE(job.Feed(StopRequested{true, "Ctrl-C"}).actions.empty()) << "it can't be more at once";
  job.EndedAll();
  EXPECT_EQ(job.job().status, JobStatus::kStopped);
  EXPECT_EQ(job.job().reason_code, "JobStoppedByUser");
}

TEST(EngineStopTest, WhoFailedAndWhoWasStoppedStaysVisible) {
  EngineHarness job(3);
  job.spec.fault_tolerance.enable_job_restart = false;
  job.Run();
  job.Feed(RankSucceeded{InstanceIndex{2}, Attempt{0}, Rank{2}});
  job.FailAndJudge(1, Retryable::kNo, 5);
  RankFailure stopped = job.Failure(0, 0);
  stopped.exit = RankExit{.signal = 15};
  stopped.stopped_by_us = true;
  job.Feed(RankFailed{stopped});
  job.EndedAll();
  const auto& instances = job.job().instances;
  EXPECT_EQ(instances[0].status, InstanceStatus::kStopped);
  EXPECT_EQ(instances[0].exit_code, 143);
  EXPECT_EQ(instances[1].status, InstanceStatus::kFailed);
  EXPECT_EQ(instances[1].exit_code, 5);
  EXPECT_EQ(instances[2].status, InstanceStatus::kSucceeded);
}

TEST(EngineStopTest, AStopDuringARestartWinsOverTheRestart) {
  EngineHarness job(2);
  job.Run();
  job.FailAndJudge(0);
  ASSERT_EQ(job.job().status, JobStatus::kRestarting);
  job.Feed(StopRequested{false, "aimaster stop"});
  job.EndedAll();
  EXPECT_EQ(job.job().status, JobStatus::kStopped);
  EXPECT_EQ(job.job().records.at(0).result, RestartResult::kStopped);
}

TEST(EngineStopTest, AStopBeforeAnythingRunsEndsAtOnce) {
  EngineHarness job(2);
  job.Submit();
  job.Feed(StopRequested{false, "Ctrl-C"});
  EXPECT_EQ(job.job().status, JobStatus::kStopped);
}

TEST(EngineStopTest, InstancesThatWillNotGoAreKilledAgainAndReportedInTheEnd) {
  EngineHarness job(2);
  job.Run();
  job.FailAndJudge(0);
  job.Ended(0);
  const Moment began = job.now;
  for (int escalations = 0; escalations < 17; ++escalations) {
    const auto stops = EngineHarness::Of<StopInstance>(job.NextTick());
    ASSERT_EQ(stops.size(), 1u);
    EXPECT_TRUE(stops[0].at_once);
    EXPECT_EQ(stops[0].instance, InstanceIndex{1});
  }
  job.NextTick();
  EXPECT_EQ(job.now.monotonic - began.monotonic, std::chrono::seconds{100}) << "grace, two recoveries, half a minute";
  EXPECT_EQ(job.job().status, JobStatus::kFailed);
  EXPECT_EQ(job.job().reason_code, "Unkillable");
  EXPECT_TRUE(job.job().reason_message.contains("worker-1"));
}

TEST(EngineNodeTest, InstancesAreSpreadInBlocks) {
  EngineHarness job(5, 2);
  job.Submit();
  std::vector<uint32_t> nodes;
  for (const InstanceState& instance : job.job().instances) nodes.push_back(Value(instance.node));
  EXPECT_EQ(nodes, (std::vector<uint32_t>{0, 0, 0, 1, 1}));
}

TEST(EngineNodeTest, ASuspectNodeIsLeftForASpare) {
  EngineHarness job(1, 2);
  job.Run();
  job.Fail(0);
  job.Judged(SuspectNode(job, 0));
  job.Ended(0);
  EXPECT_EQ(EngineHarness::Of<IsolateNode>(job.last).size(), 1u);
  EXPECT_EQ(job.job().instances[0].node, NodeIndex{1}) << "the spare";
  EXPECT_TRUE(EngineHarness::Of<AcquireNodes>(job.last).empty());
  EXPECT_EQ(job.StagesOf(1), (Strings{"detect", "collect", "decide", "stop", "isolate", "acquire", "start"}));
  EXPECT_TRUE(job.job().records[0].isolated_node);
}

TEST(EngineNodeTest, WithoutASpareANewNodeIsAskedForAndWithoutOneTheOthersShare) {
  EngineHarness job(2, 2);
  job.Run();
  job.Fail(1);
  job.Collect();
  job.Judged(SuspectNode(job, 1));
  job.EndedAll();
  const auto wanted = EngineHarness::Of<AcquireNodes>(job.last);
  ASSERT_EQ(wanted.size(), 1u);
  EXPECT_EQ(wanted[0].nodes, std::vector<NodeIndex>{NodeIndex{2}});
  EXPECT_EQ(wanted[0].avoid, std::vector<NodeIndex>{NodeIndex{1}});
  job.Feed(NodeDenied{"only two"});
  EXPECT_EQ(job.job().phase, Phase::kReserving);
  EXPECT_EQ(job.job().instances[1].node, NodeIndex{0});
}

TEST(EngineNodeTest, TheLastNodeIsNeverIsolatedAndThatIsSaid) {
  EngineHarness job(2, 1);
  job.Run();
  job.Fail(1);
  job.Collect();
  job.Judged(SuspectNode(job, 1));
  EXPECT_FALSE(job.job().nodes.at(NodeIndex{0}).isolated);
  EXPECT_TRUE(std::ranges::any_of(job.last.decisions.at(0).reasons,
                                  [](const std::string& r) { return r.contains("the last one"); }));
}

TEST(EngineNodeTest, ALostNodeFailsItsRanksAndIsReplaced) {
  EngineHarness job(2, 2);
  job.Run();
  job.Feed(NodeLost{NodeIndex{1}, "powered off"});
  ASSERT_EQ(job.job().failures.size(), 1u);
  EXPECT_FALSE(job.job().failures[0].exit);
  job.Collect();
  job.Judged(job.Verdict(1));
  job.Ended(0);
  EXPECT_EQ(EngineHarness::Of<AcquireNodes>(job.last).at(0).nodes, std::vector<NodeIndex>{NodeIndex{2}});
  job.Join(2);
  job.Port();
  EXPECT_EQ(job.job().instances[1].node, NodeIndex{2});
  EXPECT_EQ(job.job().instances[1].first_rank, Rank{1}) << "the replacement takes the numbers over";
}

TEST(EngineNodeTest, ANodeLostAfterItsRanksSucceededTakesNothingAway) {
  EngineHarness job(2, 2);
  job.Run();
  for (uint32_t i : {0u, 1u}) job.Feed(RankSucceeded{InstanceIndex{i}, Attempt{0}, Rank{i}});
  job.Ended(0);
  job.Feed(NodeLost{NodeIndex{1}, "powered off"});
  EXPECT_EQ(job.job().status, JobStatus::kSucceeded);
}

TEST(EngineNodeTest, WithNoNodeLeftTheJobFails) {
  EngineHarness job(1, 1);
  job.Submit();
  job.Feed(NodeDenied{"no machine"});
  EXPECT_EQ(job.job().status, JobStatus::kFailed);
  EXPECT_TRUE(job.job().reason_message.contains("no machine"));
}

TEST(EngineNodeTest, ANodeLostDuringTheStopCountsAsStopped) {
  EngineHarness job(2, 2);
  job.Run();
  job.FailAndJudge(0);
  job.Ended(0);
  job.Feed(NodeLost{NodeIndex{1}, "powered off"});
  EXPECT_EQ(job.job().phase, Phase::kAcquiring) << "nothing is live any more, a node is missing";
}

TEST(EngineRecoveryTest, WhatIsOutstandingIsWhatHasNotBeenAnswered) {
  EngineHarness job(2);
  job.Submit();
  EXPECT_TRUE(std::holds_alternative<AcquireNodes>(job.engine.Outstanding().at(0)));
  job.JoinAll();
  EXPECT_TRUE(std::holds_alternative<ReservePort>(job.engine.Outstanding().at(0)));
  job.Port();
  EXPECT_EQ(job.engine.Outstanding().size(), 2u);
  job.Feed(InstanceStarted{InstanceIndex{0}, Attempt{0}});
  EXPECT_EQ(job.engine.Outstanding().size(), 1u);
  job.Feed(InstanceStarted{InstanceIndex{1}, Attempt{0}});
  EXPECT_TRUE(job.engine.Outstanding().empty());
  job.Fail(0);
  EXPECT_TRUE(std::holds_alternative<CollectEvidence>(job.engine.Outstanding().at(0)));
  job.Collect();
  EXPECT_TRUE(std::holds_alternative<JudgeFailure>(job.engine.Outstanding().at(0)));
  job.Judged(job.Verdict(0));
  EXPECT_EQ(job.engine.Outstanding().size(), 2u);
  job.Feed(StopRequested{true, "test"});
  job.EndedAll();
  EXPECT_TRUE(std::holds_alternative<FinishJob>(job.engine.Outstanding().at(0)));
}

}  // namespace
}  // namespace aimaster
