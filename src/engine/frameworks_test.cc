// What a job's framework changes: addresses for all instances, whose success is the job's, and results that stay.
#include "engine/async_harness.h"

namespace aimaster {
namespace {

// Chief and worker 0 on node 0, worker 1 and the ps on node 1.
EngineHarness TensorFlowJob(ExecutionMode mode = ExecutionMode::kSync) {
  EngineHarness job(2, 2);
  job.spec.framework = Framework::kTensorFlow;
  job.spec.fault_tolerance.execution_mode = mode;
  job.spec.roles = {{Role::kChief, 1, 1}, {Role::kWorker, 2, 1}, {Role::kPs, 1, 1}};
  job.spec.success_policy = SuccessPolicy::kAllWorkers;
  return job;
}

void RunWithPorts(EngineHarness& job) {
  job.Submit();
  job.JoinAll();
  job.Ports(2000);
  job.StartedAll();
  job.ReadyAll();
  ASSERT_EQ(job.job().phase, Phase::kRunning);
}

std::vector<uint16_t> PortsOf(const EngineHarness& job) {
  std::vector<uint16_t> ports;
  for (const InstanceState& instance : job.job().instances) ports.push_back(instance.port);
  return ports;
}

void Succeed(EngineHarness& job, uint32_t instance) {
  job.Feed(RankSucceeded{InstanceIndex{instance}, job.AttemptOf(instance), Rank{instance}});
}

// ---- addresses ----

TEST(FrameworksTest, EachNodeReservesAPortForEachInstanceThere) {
  EngineHarness job = TensorFlowJob();
  job.Submit();
  job.Join(0);
  job.Join(1);
  const std::vector<ReservePort> orders{{.reservation = 1, .node = NodeIndex{0}, .hold = true, .count = 2},
                                        {.reservation = 1, .node = NodeIndex{1}, .hold = true, .count = 2}};
  EXPECT_EQ(Of<ReservePort>(job.last), orders);
  job.Feed(PortReserved{1, 2001, NodeIndex{1}, {2001, 2002}});
  EXPECT_EQ(job.job().phase, Phase::kReserving) << "the other node has not answered";
  EXPECT_EQ(job.engine.Outstanding(), std::vector<Action>{orders[0]});
  EXPECT_TRUE(job.engine.Outstanding(NodeIndex{1}).empty());
  job.Feed(PortReserved{1, 2001, NodeIndex{1}, {2001, 2002}});  // said again
  job.Feed(PortReserved{1, 3001, NodeIndex{0}, {3001, 3002}});
  EXPECT_EQ(PortsOf(job), (std::vector<uint16_t>{3001, 3002, 2001, 2002}));
  EXPECT_EQ(job.job().instances[2].address, "10.0.0.1");
  const std::vector<StartInstance> starts = Of<StartInstance>(job.last);
  ASSERT_EQ(starts.size(), 4u);
  EXPECT_EQ(starts[3].master_port, 3001) << "where rank 0 is";
}

TEST(FrameworksTest, WhereOneNodeHasNoPortAllChooseAgain) {
  EngineHarness job = TensorFlowJob();
  job.Submit();
  job.JoinAll();
  job.Feed(PortReserved{1, 2001, NodeIndex{1}, {2001, 2002}});
  job.Feed(PortRefused{1, "none is free", NodeIndex{0}});
  const std::vector<ReservePort> again{{.reservation = 2, .node = NodeIndex{0}, .hold = false, .count = 2},
                                       {.reservation = 2, .node = NodeIndex{1}, .hold = false, .count = 2}};
  EXPECT_EQ(Of<ReservePort>(job.last), again);
  job.Feed(PortReserved{2, 2003, NodeIndex{1}, {2003}});
  EXPECT_EQ(job.job().reservation, 3u) << "too few are none";
  for (int i = 0; i < 3; ++i) job.Feed(PortRefused{job.job().reservation, "none is free", NodeIndex{0}});
  EXPECT_EQ(job.job().records.size(), 1u) << "in the end it counts as a failed start";
  EXPECT_NE(job.job().records[0].reason.find("no port could be reserved"), std::string::npos);
}

TEST(FrameworksTest, ARestartOfTheJobGivesAllOthers) {
  EngineHarness job = TensorFlowJob();
  RunWithPorts(job);
  job.FailAndJudge(1);
  job.EndedAll();
  ASSERT_EQ(job.job().phase, Phase::kReserving);
  EXPECT_EQ(PortsOf(job), (std::vector<uint16_t>{0, 0, 0, 0}));
  job.Ports(5000);
  EXPECT_EQ(PortsOf(job), (std::vector<uint16_t>{5000, 5001, 5002, 5003}));
}

TEST(FrameworksTest, WhoIsRestartedAloneKeepsItsAddress) {
  EngineHarness job = TensorFlowJob(ExecutionMode::kAsync);
  RunWithPorts(job);
  const std::vector<uint16_t> before = PortsOf(job);
  job.RestartAlone(1);
  EXPECT_EQ(job.AttemptOf(1), Attempt{1});
  EXPECT_EQ(PortsOf(job), before);
  ExpectUntouched(job, {0, 2, 3});
}

TEST(FrameworksTest, WhoseNodeIsGoneCanNotKeepItsAddressAndTakesTheJobAlong) {
  EngineHarness job = TensorFlowJob(ExecutionMode::kAsync);
  job.spec.local_nodes = 4;  // instances 0 to 3 on a node each
  RunWithPorts(job);
  job.Feed(NodeLost{NodeIndex{2}, "power"});
  job.Collect();
  job.JudgedApart({job.Verdict(2)});
  EXPECT_EQ(RenewalOf(job.job().instances[2]), Renewal::kWaiting);
  job.Join(4);
  EXPECT_EQ(job.AttemptOf(2), Attempt{0}) << "not started at an address that nobody knows";
  const StepResult decided = job.NextTick();
  ASSERT_EQ(decided.decisions.size(), 1u);
  EXPECT_EQ(decided.decisions[0].kind, "Restart");
  EXPECT_NE(decided.decisions[0].summary.find("the others know it by its address there, 10.0.0.2:2002"),
            std::string::npos)
      << decided.decisions[0].summary;
  EXPECT_EQ(job.job().records.back().judgement.fault, "AddressLost");
  job.EndedAll();
  EXPECT_EQ(job.job().phase, Phase::kReserving);
}

TEST(FrameworksTest, AMoveIsNotOnceMoreWhatItsInstanceEndedWith) {
  EngineHarness job = TensorFlowJob(ExecutionMode::kAsync);
  job.spec.local_nodes = 4;
  job.spec.fault_tolerance.max_num_of_same_error = 1;
  RunWithPorts(job);
  job.Fail(2, 139);
  job.Feed(NodeLost{NodeIndex{2}, "power"});
  if (job.job().phase == Phase::kCollecting) job.Collect();
  job.JudgedApart({job.Verdict(2, Retryable::kYes, 139)});
  job.Join(4);
  const StepResult decided = job.NextTick();
  ASSERT_EQ(decided.decisions.size(), 1u);
  EXPECT_EQ(decided.decisions[0].kind, "Restart") << decided.decisions[0].summary;
}

TEST(FrameworksTest, AFailureThatIsBeingLookedIntoIsJudgedBeforeTheJobMoves) {
  EngineHarness job = TensorFlowJob(ExecutionMode::kAsync);
  job.spec.local_nodes = 4;
  RunWithPorts(job);
  job.Feed(NodeLost{NodeIndex{2}, "power"});
  job.Collect();
  job.JudgedApart({job.Verdict(2)});
  job.Join(4);
  job.Fail(1, 1);
  ASSERT_EQ(job.job().phase, Phase::kCollecting);
  EXPECT_TRUE(job.NextTick().decisions.empty());
  if (job.job().phase == Phase::kCollecting) job.Collect();
  job.JudgedApart({job.Verdict(1, Retryable::kNo)});
  EXPECT_EQ(job.job().status, JobStatus::kStopping) << "a bug on another instance, which the move would have hidden";
}

TEST(FrameworksTest, ANodeWithTheSameAddressIsAsGood) {
  EngineHarness job = TensorFlowJob(ExecutionMode::kAsync);
  job.spec.local_nodes = 4;
  RunWithPorts(job);
  job.Feed(NodeLost{NodeIndex{2}, "power"});
  job.Collect();
  job.JudgedApart({job.Verdict(2)});
  job.Feed(NodeJoined{NodeIndex{4}, "node-4", "10.0.0.2"});
  EXPECT_EQ(job.AttemptOf(2), Attempt{1});
  EXPECT_EQ(job.job().instances[2].node, NodeIndex{4});
}

TEST(FrameworksTest, AJobFromBeforeAddressesIsAskedForPortsByWhoGoesOnWithIt) {
  EngineHarness job = TensorFlowJob();
  job.Submit();
  job.JoinAll();
  JobState stored = job.job();  // waiting for its one port, as it was then
  const Engine successor(std::move(stored));
  EXPECT_EQ(Of<ReservePort>({.actions = successor.Outstanding()}).size(), 2u);
}

// ---- success ----

TEST(FrameworksTest, APsAndAnEvaluatorAreStoppedWhenTheOthersAreDone) {
  EngineHarness job = TensorFlowJob();
  job.spec.roles.push_back({Role::kEvaluator, 1, 1});
  RunWithPorts(job);
  for (const uint32_t instance : {0u, 1u, 2u}) {
    EXPECT_EQ(job.job().phase, Phase::kRunning);
    Succeed(job, instance);
    job.Ended(instance);
  }
  const std::vector<StopInstance> stops = Of<StopInstance>(job.last);
  ASSERT_EQ(stops.size(), 2u);
  EXPECT_EQ(stops[0].instance, InstanceIndex{3});
  job.Ended(3);
  job.Ended(4);
  EXPECT_EQ(job.job().status, JobStatus::kSucceeded);
  EXPECT_EQ(job.job().reason_message, "every rank that is no ps or evaluator ended with exit code 0");
}

TEST(FrameworksTest, TheChiefsSuccessIsEnoughWhereTheOthersServeIt) {
  EngineHarness job = TensorFlowJob();
  job.spec.success_policy = SuccessPolicy::kAuto;
  RunWithPorts(job);
  Succeed(job, 0);
  job.Ended(0);
  EXPECT_EQ(Of<StopInstance>(job.last).size(), 3u);
  for (const uint32_t instance : {1u, 2u, 3u}) job.Ended(instance);
  EXPECT_EQ(job.job().status, JobStatus::kSucceeded);
  EXPECT_EQ(job.job().reason_message, "the chief ended with exit code 0");
}

TEST(FrameworksTest, WhatFailsAfterAllIsDoneFailsInVain) {
  EngineHarness job = TensorFlowJob();
  job.spec.success_policy = SuccessPolicy::kAuto;
  RunWithPorts(job);
  Succeed(job, 0);
  job.Fail(3);  // it lost its client; that the chief's attempt has ended comes later
  ASSERT_EQ(job.job().phase, Phase::kCollecting);
  job.Ended(0);
  EXPECT_EQ(job.last.decisions.at(0).kind, "Succeed");
  for (const uint32_t instance : {1u, 2u, 3u}) job.Ended(instance);
  EXPECT_EQ(job.job().status, JobStatus::kSucceeded);
  EXPECT_TRUE(job.job().records.empty());
}

TEST(FrameworksTest, AlsoWhereItIsJudgedBeforeThat) {
  EngineHarness job = TensorFlowJob();
  job.spec.success_policy = SuccessPolicy::kAuto;
  RunWithPorts(job);
  job.Fail(3);
  Succeed(job, 0);
  job.Collect();
  const StepResult judged = job.Judged(job.Verdict(3, Retryable::kNo));
  EXPECT_EQ(judged.decisions.at(0).kind, "Succeed");
  job.EndedAll();
  EXPECT_EQ(job.job().status, JobStatus::kSucceeded);
}

// ---- wrapped around torchrun ----

// A process beneath the torchrun that instance 0 is; its node has nothing more to tell.
void FailBeneathTorchrun(EngineHarness& job, int code) {
  RankFailure failure = job.Failure(0, code);
  failure.torchrun = Torchrun{.rank = 0, .pid = 1};
  job.Feed(RankFailed{failure});
  job.Feed(EvidenceCollected{job.job().collection, NodeIndex{0}, {}});
}

TEST(FrameworksTest, AnExceptionBeneathATorchrunWaitsForWhatOtherTorchrunsFind) {
  EngineHarness job(3);
  job.Run();
  FailBeneathTorchrun(job, 1);
  job.Pass(std::chrono::seconds{5});
  job.Feed(Tick{});
  EXPECT_EQ(job.job().phase, Phase::kCollecting);
  job.Fail(1, 137);
  job.NextTick();
  EXPECT_EQ(job.job().phase, Phase::kJudging) << "in the end nobody else is waited for";
  EXPECT_EQ(job.job().failures.size(), 2u);
}

TEST(FrameworksTest, WhatIsNobodysConsequenceDoesNotWait) {
  EngineHarness job(2);
  job.Run();
  FailBeneathTorchrun(job, 7);
  job.Pass(std::chrono::seconds{1});
  job.Feed(Tick{});
  EXPECT_EQ(job.job().phase, Phase::kJudging);
}

// ---- results that stay ----

EngineHarness BatchJob(ExecutionMode mode) {
  EngineHarness job(3);
  job.spec.framework = Framework::kElasticBatch;
  job.spec.fault_tolerance.execution_mode = mode;
  job.Submit();
  job.JoinAll();
  job.StartedAll();
  job.ReadyAll();
  return job;
}

TEST(FrameworksTest, IndependentInstancesStartWithoutAPort) {
  const EngineHarness job = BatchJob(ExecutionMode::kAsync);
  EXPECT_EQ(job.job().phase, Phase::kRunning);
  EXPECT_EQ(job.job().status, JobStatus::kRunning);
  EXPECT_EQ(job.job().master_port, 0);
}

TEST(FrameworksTest, ARestartOfAllLeavesOutWhatIsDone) {
  EngineHarness job = BatchJob(ExecutionMode::kSync);
  Succeed(job, 0);
  job.Ended(0);
  Succeed(job, 1);  // and is still being swept
  const StepResult judged = job.FailAndJudge(2);
  EXPECT_EQ(Of<StopInstance>(judged).size(), 2u);
  job.Ended(1);
  const std::vector<StartInstance> starts = Of<StartInstance>(job.Ended(2));
  ASSERT_EQ(starts.size(), 1u);
  EXPECT_EQ(starts[0].instance, InstanceIndex{2});
  EXPECT_EQ(starts[0].restart_count, 1u);
  EXPECT_EQ(job.AttemptOf(0), Attempt{0});
  EXPECT_EQ(job.job().instances[1].status, InstanceStatus::kSucceeded);
  job.Feed(InstanceStarted{InstanceIndex{2}, Attempt{1}});
  EXPECT_EQ(job.job().status, JobStatus::kRunning);
  Succeed(job, 2);
  job.Ended(2);
  EXPECT_EQ(job.job().status, JobStatus::kSucceeded);
  EXPECT_EQ(job.job().restarts, 1u);
}

TEST(FrameworksTest, AMasterOfIndependentInstancesIsRestartedAlone) {
  EngineHarness job(2);
  job.spec.framework = Framework::kElasticBatch;
  job.spec.fault_tolerance.execution_mode = ExecutionMode::kAsync;
  job.spec.roles = {{Role::kMaster, 1, 1}, {Role::kWorker, 1, 1}};
  job.Submit();
  job.JoinAll();
  job.StartedAll();
  job.RestartAlone(0);
  EXPECT_EQ(job.AttemptOf(0), Attempt{1});
  ExpectUntouched(job, {1});
}

TEST(FrameworksTest, AnAddressInUseIsNoFailedStartWhereNoneWasGiven) {
  EngineHarness job = BatchJob(ExecutionMode::kSync);
  job.Fail(0);
  job.Collect();
  Judgement judgement = job.Verdict(0);
  judgement.address_in_use = true;
  EXPECT_EQ(job.Judged(judgement).decisions.at(0).kind, "Restart");
}

// ---- hosts of an MPI job ----

// Launcher on node 0, a host for it on node 1.
EngineHarness MpiJob() {
  EngineHarness job(1, 2);
  job.spec.framework = Framework::kMpi;
  job.spec.roles = {{Role::kLauncher, 1, 1}, {Role::kWorker, 1, 1}};
  return job;
}

TEST(FrameworksTest, AnMpiJobHasSucceededWhenItsLauncherHas) {
  EngineHarness job = MpiJob();
  job.Run();
  Succeed(job, 0);
  job.Ended(0);
  EXPECT_EQ(job.job().phase, Phase::kStopping);
  RankFailure failure = job.Failure(1, 143);
  failure.stopped_by_us = true;
  job.Feed(RankFailed{failure});
  job.Ended(1);
  EXPECT_EQ(job.job().status, JobStatus::kSucceeded);
}

TEST(FrameworksTest, ALauncherThatEndsWellAfterItLostAHostHasNotSucceeded) {
  EngineHarness job = MpiJob();
  job.Run();
  job.Fail(1, 137);
  Succeed(job, 0);
  job.Ended(0);
  job.Ended(1);
  ASSERT_EQ(job.job().phase, Phase::kJudging) << "all have ended, there is nothing to wait for";
  job.Judged(job.Verdict(1, Retryable::kYes, 137));
  EXPECT_EQ(job.job().restarts, 1u);
  EXPECT_EQ(job.job().phase, Phase::kReserving);
}

TEST(FrameworksTest, ASuccessIsTakenBackWhenAHostTurnsOutToHaveFailedBefore) {
  EngineHarness job = MpiJob();
  job.Run();
  Succeed(job, 0);
  job.Ended(0);
  job.Fail(1, 137);
  EXPECT_EQ(job.job().phase, Phase::kStopping);
  const StepResult taken_back = job.Ended(1);
  ASSERT_EQ(job.job().phase, Phase::kJudging);
  ASSERT_EQ(taken_back.decisions.size(), 1u);
  EXPECT_EQ(taken_back.decisions[0].summary, "exit code 0 of the launcher does not count: " +
                                                 job.job().instances[1].name + ", which held ranks for it, had failed");
  ASSERT_EQ(job.job().failures.size(), 1u);
  job.Judged(job.Verdict(1, Retryable::kYes, 137));
  EXPECT_EQ(job.job().restarts, 1u);
  job.Run();
  Succeed(job, 0);
  job.EndedAll();
  EXPECT_EQ(job.job().status, JobStatus::kSucceeded) << "the failure was the last round's";
}

TEST(FrameworksTest, ASuccessIsTakenBackInAnAsyncJobAsInAnyOther) {
  EngineHarness job = MpiJob();
  job.spec.fault_tolerance.execution_mode = ExecutionMode::kAsync;
  job.Run();
  Succeed(job, 0);
  job.Ended(0);
  job.Fail(1, 137);
  job.Ended(1);
  ASSERT_EQ(job.job().phase, Phase::kJudging);
  EXPECT_FALSE(EngineHarness::Of<JudgeFailure>(job.last).at(0).apart) << "no part of an MPI job comes back alone";
}

TEST(FrameworksTest, WhatCanNotBeRestartedFailsAfterItsSuccessWasTakenBack) {
  EngineHarness job = MpiJob();
  job.Run();
  Succeed(job, 0);
  job.Fail(1, 137);
  job.EndedAll();
  job.Judged(job.Verdict(1, Retryable::kNo, 137));
  EXPECT_EQ(job.job().status, JobStatus::kFailed);
  EXPECT_EQ(job.job().exit_code, 137);
}

TEST(FrameworksTest, APersonsStopHoldsWhenTheSuccessIsTakenBack) {
  EngineHarness job = MpiJob();
  job.Run();
  Succeed(job, 0);
  job.Feed(StopRequested{.by = "Ctrl-C"});
  job.Fail(1, 137);
  job.EndedAll();
  EXPECT_EQ(job.job().status, JobStatus::kStopped);
  EXPECT_EQ(job.job().reason_message, "Job is stopped by Ctrl-C.");
}

}  // namespace
}  // namespace aimaster
