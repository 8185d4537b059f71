// Where a worker of an Async job goes that is restarted alone, and who may say so how often.
#include "engine/async_harness.h"
#include "engine/layout.h"

namespace aimaster {
namespace {

TEST(AsyncNodeTest, OnlyTheFailedWorkerLeavesASuspectNode) {
  EngineHarness job = AsyncJob(4, 2);
  job.Run();
  job.Fail(0);
  job.Collect();
  job.JudgedApart({SuspectNode(job, 0)});
  EXPECT_EQ(Of<IsolateNode>(job.last).size(), 1u);
  job.Ended(0);
  ASSERT_EQ(Of<AcquireNodes>(job.last).size(), 1u);
  EXPECT_EQ(Of<AcquireNodes>(job.last)[0].nodes, std::vector<NodeIndex>{NodeIndex{2}});
  EXPECT_EQ(job.job().instances[0].status, InstanceStatus::kPending);
  EXPECT_EQ(job.engine.Outstanding(), std::vector<Action>{Of<AcquireNodes>(job.last)[0]});
  const auto starts = Of<StartInstance>(job.Feed(NodeDenied{"only two"}));
  ASSERT_EQ(starts.size(), 1u);
  EXPECT_EQ(starts[0].node, NodeIndex{1}) << "the other node";
  ExpectUntouched(job, {1, 2, 3});
  EXPECT_EQ(job.job().instances[1].node, NodeIndex{0}) << "it still runs there";
  EXPECT_TRUE(job.job().records.at(0).isolated_node);
  job.Feed(InstanceStarted{InstanceIndex{0}, Attempt{1}});
  // Its neighbour follows when it fails itself.
  job.FailAlone(1);
  EXPECT_EQ(Of<StartInstance>(job.Ended(1)).at(0).node, NodeIndex{1});
}

TEST(AsyncNodeTest, WhoComesToANodeIsCountedBehindThoseWhoRunThere) {
  EngineHarness job = AsyncJob(4, 2);
  job.Run();
  for (uint32_t i : {1u, 0u}) {
    job.Fail(i);
    job.Collect();
    job.JudgedApart({SuspectNode(job, i)});
    job.Ended(i);
    if (job.job().tallies.waiting > 0) job.Feed(NodeDenied{"only two"});
    job.Feed(InstanceStarted{InstanceIndex{i}, job.AttemptOf(i)});
  }
  const std::vector<NodePlace> places = PlacesOnNodes(job.job());
  EXPECT_EQ(places[2].first_local_rank, 0u);
  EXPECT_EQ(places[3].first_local_rank, 1u);
  EXPECT_EQ(places[1].first_local_rank, 2u) << "the first that came";
  EXPECT_EQ(places[0].first_local_rank, 3u);
  EXPECT_EQ(places[0].local_world_size, 4u);
}

TEST(AsyncNodeTest, ASpareTakesAWorkerInAtOnce) {
  EngineHarness job = AsyncJob(1, 2);
  job.Run();
  job.Fail(0);
  job.JudgedApart({SuspectNode(job, 0)});
  EXPECT_EQ(Of<StartInstance>(job.Ended(0)).at(0).node, NodeIndex{1});
}

TEST(AsyncNodeTest, TheWorkersOfALostNodeMoveToItsReplacementTogether) {
  EngineHarness job = AsyncJob(4, 2);
  job.Run();
  job.Feed(NodeLost{NodeIndex{1}, "powered off"});
  ASSERT_EQ(job.job().failures.size(), 2u);
  job.Collect();
  job.JudgedApart({job.Verdict(2), job.Verdict(3)});
  EXPECT_EQ(job.job().tallies.waiting, 2u);
  const auto starts = Of<StartInstance>((job.Join(2), job.last));
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_EQ(starts[0].node, NodeIndex{2});
  EXPECT_EQ(starts[1].node, NodeIndex{2});
  EXPECT_EQ(job.job().nodes.size(), 3u) << "one is asked for, not one for each";
  ExpectUntouched(job, {0, 1});
}

TEST(AsyncNodeTest, ANodeLostInTheMiddleOfAStopEndsTheWait) {
  EngineHarness job = AsyncJob(2, 2);
  job.Run();
  job.FailAlone(1);
  job.Feed(NodeLost{NodeIndex{1}, "powered off"});
  EXPECT_EQ(job.job().phase, Phase::kRunning) << "it is decided already";
  EXPECT_EQ(job.job().instances[1].status, InstanceStatus::kPending);
  EXPECT_EQ(Of<StartInstance>((job.Join(2), job.last)).size(), 1u);
}

TEST(AsyncNodeTest, ANodeThatNeverComesIsWaitedForAgainUntilALimit) {
  EngineHarness job = AsyncJob(2, 2);
  job.spec.fault_tolerance.max_num_of_same_error = 2;
  job.Run();
  job.Feed(NodeLost{NodeIndex{1}, "powered off"});
  job.Collect();
  Judgement lost = job.Verdict(1);
  lost.error_code.reset();
  lost.fault = "NodeLost";
  job.JudgedApart({lost});
  for (int timeouts = 0; timeouts < 2; ++timeouts) {
    job.NextTick();
    ASSERT_EQ(job.job().phase, Phase::kRunning) << timeouts;
    EXPECT_EQ(job.job().records.back().judgement.fault, "NodeTimeout");
    EXPECT_EQ(Of<AcquireNodes>(job.last).size(), 1u) << "asked for again";
  }
  job.NextTick();
  EXPECT_EQ(job.job().stop_purpose, StopPurpose::kFail);
  EXPECT_EQ(job.job().reason_code, "NodeTimeout");
}

TEST(AsyncNodeTest, AfterARestartOfTheJobEverybodyIsWhereItsSlotIs) {
  EngineHarness job = ParameterServerJob(2);
  job.spec.fault_tolerance.enable_job_restart = true;
  job.spec.roles = {{Role::kWorker, 3, 1}, {Role::kPs, 1, 1}};
  job.Run();
  job.Fail(0);
  job.Collect();
  job.JudgedApart({SuspectNode(job, 0)});
  job.Ended(0);
  job.Feed(NodeDenied{"only two"});
  EXPECT_EQ(job.job().instances[1].node, NodeIndex{0});
  job.Fail(3);
  job.Collect();
  job.Judged(job.Verdict(3));
  job.EndedAll();
  for (const StartInstance& start : Of<StartInstance>(job.Port())) EXPECT_EQ(start.node, NodeIndex{1});
  const std::vector<NodePlace> places = PlacesOnNodes(job.job());
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(places[i].first_local_rank, i);
}

// ---- limits ----

TEST(AsyncLimitsTest, RestartsOfWorkersAreNotLimitedByTheNumberOfRestarts) {
  EngineHarness job = AsyncJob();
  job.spec.fault_tolerance.max_num_of_job_restart = 0;
  job.Run();
  for (int code = 1; code < 20; ++code) job.RestartAlone(1, code);
  EXPECT_EQ(job.job().status, JobStatus::kRunning);
  EXPECT_EQ(job.job().records.size(), 19u);
  EXPECT_EQ(job.AttemptOf(1), Attempt{19});
}

TEST(AsyncLimitsTest, TheSameErrorTooOftenEndsTheJob) {
  EngineHarness job = AsyncJob();
  job.spec.fault_tolerance.max_num_of_same_error = 2;
  job.Run();
  job.RestartAlone(0, 9);
  job.RestartAlone(1, 9);
  job.RestartAlone(0, 9);
  job.FailAlone(0, Retryable::kYes, 9);
  EXPECT_EQ(job.job().stop_purpose, StopPurpose::kFail);
  EXPECT_TRUE(job.job().reason_message.contains("--max-num-of-same-error=2"));
}

TEST(AsyncLimitsTest, TheFourthOfTenWorkersIsOverARateOfThirtyPercent) {
  EngineHarness job = AsyncJob(10);
  job.spec.fault_tolerance.max_tolerated_failure_rate = 0.3;
  job.spec.roles.push_back({Role::kPs, 4, 1});
  job.Run();
  for (const uint32_t worker : {0u, 1u, 0u, 2u}) job.RestartAlone(worker, 1);
  EXPECT_EQ(job.job().status, JobStatus::kRunning);
  job.FailAlone(3);
  EXPECT_TRUE(job.job().reason_message.contains("--max-tolerated-failure-rate=0.3"));
}

TEST(AsyncLimitsTest, ThePolicyDecidesAsItDoesForTheJob) {
  for (const auto& [policy, retryable, restarts] :
       {std::tuple{FaultTolerantPolicy::kOnFailure, Retryable::kNo, true},
        std::tuple{FaultTolerantPolicy::kExitCodeAndErrorMsg, Retryable::kNo, false},
        std::tuple{FaultTolerantPolicy::kExitCodeAndErrorMsg, Retryable::kYes, true},
        std::tuple{FaultTolerantPolicy::kNever, Retryable::kYes, false}}) {
    EngineHarness job = AsyncJob();
    job.spec.fault_tolerance.fault_tolerant_policy = policy;
    job.Run();
    job.FailAlone(0, retryable);
    EXPECT_EQ(job.job().phase == Phase::kRunning, restarts) << int(policy) << " " << Name(retryable);
  }
}

TEST(AsyncLimitsTest, NoProgressIsMeasuredByTheLifeOfTheWorker) {
  EngineHarness job = AsyncJob();
  job.spec.fault_tolerance.no_progress_limit = 2;
  job.Run();
  job.Pass(std::chrono::minutes{10});
  job.RestartAlone(0);
  job.RestartAlone(0);
  EXPECT_EQ(job.job().phase, Phase::kRunning);
  job.FailAlone(0);
  EXPECT_TRUE(job.job().reason_message.contains("--no-progress-limit=2")) << job.job().reason_message;
}

}  // namespace
}  // namespace aimaster
