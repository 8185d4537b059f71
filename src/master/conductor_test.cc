// The master's order of things: durable first, then done; and what it makes of agents that come, go and come back.
#include <signal.h>

#include <algorithm>

#include "master/conductor_bench.h"

namespace aimaster {
namespace {

TEST(ConductorTest, NothingIsDoneBeforeItIsDurable) {
  Bench bench;
  bench.Begin();
  EXPECT_EQ(bench.Count<AcquireFromProvider>(), 0u);
  bench.conductor.BeginWrite();
  EXPECT_EQ(bench.Count<AcquireFromProvider>(), 0u);
  bench.conductor.OnDurable(bench.now);
  EXPECT_GE(bench.Count<AcquireFromProvider>(), 1u);
}

TEST(ConductorTest, AReportThatComesDuringAWriteIsNotAcknowledgedByIt) {
  Bench bench;
  bench.RunToStart();
  bench.Heard(kFirst);
  bench.Report(kFirst, 2, Bench::Started(0));
  bench.conductor.BeginWrite();
  bench.Report(kFirst, 3, Bench::Started(1));
  bench.conductor.OnDurable(bench.now);
  const std::vector<v1::ToAgent> first = bench.Heard(kFirst);
  ASSERT_EQ(Acknowledgements(first), 1u);
  EXPECT_EQ(first.front().acknowledge().sequence(), 2u);
  bench.Settle();
  EXPECT_EQ(bench.Heard(kFirst).front().acknowledge().sequence(), 3u);
}

TEST(ConductorTest, AReportThatIsSentAgainIsAcknowledgedAgainAndChangesNothing) {
  Bench bench;
  bench.RunToStart();
  bench.Report(kFirst, 2, Bench::Started(0));
  bench.Settle();
  bench.Heard(kFirst);
  bench.Report(kFirst, 2, Bench::Started(0));
  EXPECT_TRUE(bench.conductor.BeginWrite().empty());
  bench.conductor.OnDurable(bench.now);
  EXPECT_EQ(Acknowledgements(bench.Heard(kFirst)), 1u);
}

TEST(ConductorTest, AFailedWriteIsTriedAgainWithAllThatCameSince) {
  Bench bench;
  bench.RunToStart();
  bench.Heard(kFirst);
  bench.Report(kFirst, 2, Bench::Started(0));
  bench.conductor.BeginWrite();
  bench.conductor.OnNotDurable("disk full");
  EXPECT_EQ(bench.conductor.trouble(), "disk full");
  EXPECT_FALSE(bench.conductor.NextDeadline());  // decisions wait
  bench.Report(kFirst, 3, Bench::Started(1));
  EXPECT_EQ(Acknowledgements(bench.Heard(kFirst)), 0u);
  EXPECT_EQ(bench.conductor.BeginWrite().size(), 2u);
  bench.conductor.OnDurable(bench.now);
  EXPECT_EQ(bench.conductor.trouble(), "");
  EXPECT_EQ(bench.Heard(kFirst).front().acknowledge().sequence(), 3u);
}

TEST(ConductorTest, APersonsStopIsCarriedOutThoughTheDiskIsFull) {
  Bench bench;
  bench.RunToStart();
  bench.Heard(kFirst);
  bench.conductor.Stop(bench.now, false, "Ctrl-C");
  bench.conductor.BeginWrite();
  EXPECT_EQ(CountOf(bench.Heard(kFirst), v1::Command::kStopInstance), 0u);
  bench.conductor.OnNotDurable("disk full");
  EXPECT_EQ(CountOf(bench.Heard(kFirst), v1::Command::kStopInstance), 2u);
}

TEST(ConductorTest, ADecisionIsNotCarriedOutWhileTheDiskIsFull) {
  Bench bench;
  bench.RunToStart();
  v1::Report failed;
  failed.mutable_rank_exited()->set_code(1);
  bench.Report(kFirst, 2, failed);
  bench.Settle();
  bench.Heard(kFirst);
  for (bench.Pass(3min); bench.conductor.engine().job().phase != Phase::kStopping; bench.Pass(1s)) {
    bench.conductor.OnTime(bench.now);
    bench.conductor.BeginWrite();
    if (bench.conductor.engine().job().phase != Phase::kStopping) bench.conductor.OnDurable(bench.now);
    ASSERT_LT(bench.now.monotonic.since_origin, 2000s);
  }
  ASSERT_EQ(bench.conductor.engine().job().phase, Phase::kStopping);
  bench.conductor.OnNotDurable("disk full");
  EXPECT_EQ(CountOf(bench.Heard(kFirst), v1::Command::kStopInstance), 0u);
}

// Ranks 0 and 1 wait in vain for a collective operation that rank 2, which lives, never began.
TEST(ConductorTest, ALiveRankThatKeptTheOthersWaitingIsTheRootCause) {
  Bench bench(1, 3);
  bench.RunToStart();
  for (uint32_t rank : {0u, 1u, 2u}) bench.Report(kFirst, 2 + rank, Bench::Started(rank));
  for (uint32_t rank : {0u, 1u}) {
    v1::Report report;
    v1::RankExited& exited = *report.mutable_rank_exited();
    exited.mutable_id()->set_instance(rank);
    exited.set_rank(rank);
    exited.set_code(1);
    v1::LineMatch& match = *exited.add_matches();
    match.set_rule("CollectiveTimeout");
    match.set_file("rank0.err");
    match.set_line("Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=8)");
    bench.Report(kFirst, 5 + rank, report);
  }
  bench.Settle();
  const JobState& job = bench.conductor.engine().job();
  for (bench.Pass(3min); job.records.empty(); bench.Pass(1s)) {
    bench.conductor.OnTime(bench.now);
    bench.Settle();
    ASSERT_LT(bench.now.monotonic.since_origin, 2000s);
  }
  const RestartRecord& record = job.records.front();
  EXPECT_EQ(record.judgement.root_rank, Rank{2});
  EXPECT_EQ(record.instance_name, job.instances[2].name);
  EXPECT_EQ(record.judgement.message, "rank 2 says nothing while 2 ranks wait for collective 7 (ALLREDUCE)");
}

TEST(ConductorTest, AConnectionThatDoesNotBeginWithHelloIsHungUp) {
  Bench bench;
  bench.Begin();
  bench.Settle();
  bench.Report(kFirst, 1, Bench::Started(0));
  EXPECT_EQ(bench.Count<HangUp>(), 1u);
  bench.conductor.OnMessage(bench.now, kSecond, "\xff\xff\xff");
  EXPECT_EQ(bench.Count<HangUp>(), 2u);
}

TEST(ConductorTest, AnAgentThatComesBackIsToldAgainWhatItHasNotAnswered) {
  Bench bench;
  bench.RunToStart();
  bench.Report(kFirst, 2, Bench::Started(0));
  bench.Settle();
  bench.conductor.OnDisconnected(kFirst, "reset");
  bench.Hello(kSecond);
  bench.Settle();
  const std::vector<v1::ToAgent> heard = bench.Heard(kSecond);
  ASSERT_TRUE(heard.front().has_welcome());
  EXPECT_EQ(CountOf(heard, v1::Command::kStartInstance), 1u);  // of instance 1; 0 has answered
}

TEST(ConductorTest, TheFormerConnectionOfAnAgentIsNobodysOnceItHasDialledAgain) {
  Bench bench;
  bench.RunToStart();
  bench.effects.clear();
  bench.Hello(kSecond);
  EXPECT_EQ(bench.Count<HangUp>(), 1u);
  bench.Settle();
  bench.Heard(kSecond);
  bench.conductor.OnDisconnected(kFirst, "late");
  bench.Report(kSecond, 2, Bench::Started(0));
  bench.Settle();
  EXPECT_EQ(Acknowledgements(bench.Heard(kSecond)), 1u);
}

TEST(ConductorTest, ReportsOfANewAgentProcessCountFromOneAgain) {
  Bench bench;
  bench.RunToStart();
  bench.Hello(kSecond, "b");
  bench.Settle();
  bench.Report(kSecond, 1, Bench::Started(0));
  EXPECT_EQ(bench.conductor.BeginWrite().size(), 1u);
}

TEST(ConductorTest, AnAgentThatHasSeenAGreaterEpochIsNotWelcomed) {
  Bench bench(3);
  bench.Begin();
  bench.Settle();
  bench.Hello(kFirst, "a", 4);
  EXPECT_EQ(bench.Count<LookForSuccessor>(), 1u);
  EXPECT_EQ(bench.Count<HangUp>(), 1u);
  EXPECT_TRUE(bench.Heard(kFirst).empty());
}

TEST(ConductorTest, TheAgentOfALostNodeIsRefusedAndItsRanksAreToEnd) {
  Bench bench;
  bench.RunToStart();
  bench.conductor.OnNodeLost(bench.now, NodeIndex{0}, "power");
  bench.Settle();
  bench.Heard(kSecond);
  bench.Hello(kSecond);
  const std::vector<v1::ToAgent> heard = bench.Heard(kSecond);
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_TRUE(heard.front().refused().job_over());
}

TEST(ConductorTest, NobodyIsRefusedForWhatIsNotDurableYet) {
  Bench bench;
  bench.RunToStart();
  bench.conductor.OnNodeLost(bench.now, NodeIndex{0}, "power");
  bench.conductor.BeginWrite();
  bench.conductor.OnNotDurable("disk full");
  bench.Heard(kSecond);
  bench.Hello(kSecond);
  EXPECT_EQ(bench.Count<HangUp>(), 1u) << "so that it dials again";
  EXPECT_TRUE(bench.Heard(kSecond).empty()) << "a crash may still forget that the node was lost";
  bench.Settle();
  bench.Hello(ConnectionId{77});
  const std::vector<v1::ToAgent> heard = bench.Heard(ConnectionId{77});
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_TRUE(heard.front().refused().job_over());
}

TEST(ConductorTest, TheAgentOfANodeThatIsDeclaredLostIsTurnedAwayAtOnce) {
  Bench bench;
  bench.RunToStart();
  bench.Heard(kFirst);
  bench.conductor.OnNodeLost(bench.now, NodeIndex{0}, "power");
  bench.conductor.BeginWrite();
  bench.conductor.OnDurable(bench.now);
  const std::vector<v1::ToAgent> heard = bench.Heard(kFirst);
  ASSERT_FALSE(heard.empty());
  EXPECT_TRUE(heard.back().refused().job_over());
  EXPECT_EQ(heard.back().refused().epoch(), 1u);
}

TEST(ConductorTest, AnAttemptThatWasGivenUpIsStoppedWhereItIsFoundAndNoOther) {
  Bench bench;
  bench.RunToStart();
  v1::ToMaster message;
  message.mutable_hello()->set_node_name("node");
  message.mutable_hello()->set_agent_id("b");
  message.mutable_hello()->add_live()->set_instance(0);
  v1::AttemptId& stray = *message.mutable_hello()->add_live();
  stray.set_instance(1);
  stray.set_attempt(7);
  bench.Say(kSecond, message);
  const std::vector<v1::ToAgent> heard = bench.Heard(kSecond);
  ASSERT_EQ(CountOf(heard, v1::Command::kStopInstance), 1u);
  EXPECT_EQ(heard.back().command().stop_instance().id().attempt(), 7u);
}

// ---- an agent that does not name what should run on its node ----

v1::Report Ended(uint32_t instance, const std::string& lost_reason = {}) {
  v1::Report report;
  report.mutable_attempt_ended()->mutable_id()->set_instance(instance);
  report.mutable_attempt_ended()->set_lost_reason(lost_reason);
  return report;
}

TEST(ConductorTest, AnAttemptThatHadStartedAndIsNotNamedIsJudgedLost) {
  Bench bench;
  bench.RunToStart();
  bench.Report(kFirst, 2, Bench::Started(0));
  bench.Settle();
  bench.Hello(kSecond, "b");
  bench.Settle();
  EXPECT_EQ(CountOf(bench.Heard(kSecond), v1::Command::kStartInstance), 1u) << "what had not started is started";
  bench.Heartbeat(kSecond);
  EXPECT_FALSE(bench.conductor.WantsToWrite()) << "its end may be on the way";
  bench.Heartbeat(kSecond);
  bench.Settle();
  const JobState& job = bench.conductor.engine().job();
  EXPECT_EQ(job.phase, Phase::kCollecting);
  ASSERT_EQ(job.failures.size(), 1u);
  EXPECT_EQ(job.failures[0].instance, InstanceIndex{0});
  EXPECT_NE(job.failures[0].lost_reason.find("finds no record of it"), std::string::npos);
}

TEST(ConductorTest, WhatIsNotNamedAndHasEndedIsNoLoss) {
  Bench bench;
  bench.RunToStart();
  bench.Report(kFirst, 2, Bench::Started(0));
  bench.Settle();
  bench.Hello(kSecond);
  bench.Heartbeat(kSecond);
  v1::Report well;
  well.mutable_rank_exited()->set_code(0);
  bench.Report(kSecond, 3, well);
  bench.Report(kSecond, 4, Ended(0));
  bench.Heartbeat(kSecond);
  bench.Settle();
  EXPECT_EQ(bench.conductor.engine().job().phase, Phase::kRunning);
  EXPECT_EQ(bench.conductor.engine().job().instances[0].status, InstanceStatus::kSucceeded);
}

TEST(ConductorTest, TheReasonOfALostAttemptCountsForRanksOfWhomNothingWasSaid) {
  Bench bench;
  bench.RunToStart();
  bench.Report(kFirst, 2, Bench::Started(1));
  bench.Report(kFirst, 3, Ended(1, "its claim is lost"));
  bench.Settle();
  ASSERT_EQ(bench.conductor.engine().job().failures.size(), 1u);
  EXPECT_EQ(bench.conductor.engine().job().failures[0].lost_reason, "its claim is lost");
  EXPECT_EQ(bench.conductor.engine().job().failures[0].rank, Rank{1});
}

TEST(ConductorTest, WhatIsStartedWhileAnAgentComesBackIsNoLoss) {
  Bench bench;
  bench.Begin();
  bench.Settle();
  bench.Hello(kFirst);
  bench.Settle();
  v1::Report reserved;
  reserved.mutable_port_reserved()->set_reservation(1);
  reserved.mutable_port_reserved()->set_port(23456);
  bench.Report(kFirst, 1, reserved);
  bench.conductor.BeginWrite();  // the decision to start is being written
  bench.Hello(kSecond);          // by an agent that has been told nothing yet
  bench.conductor.OnDurable(bench.now);
  ASSERT_EQ(CountOf(bench.Heard(kSecond), v1::Command::kStartInstance), 2u);
  bench.Report(kSecond, 2, Bench::Started(0));
  for (int i = 0; i < 3; ++i) bench.Heartbeat(kSecond);
  bench.Settle();
  EXPECT_TRUE(bench.conductor.engine().job().instances[0].started);
  EXPECT_EQ(bench.conductor.engine().job().phase, Phase::kRunning);
}

TEST(ConductorTest, AHelloThatAnotherHasOvertakenProvesNothing) {
  Bench bench;
  bench.RunToStart();
  bench.Report(kFirst, 2, Bench::Started(0));
  bench.Settle();
  bench.Hello(kSecond);  // names nothing
  v1::ToMaster message;
  message.mutable_hello()->set_node_name("node");
  message.mutable_hello()->set_agent_id("a");
  message.mutable_hello()->add_live()->set_instance(0);
  bench.Say(ConnectionId{3}, message);
  for (int i = 0; i < 3; ++i) bench.Heartbeat(ConnectionId{3});
  bench.Settle();
  EXPECT_EQ(bench.conductor.engine().job().phase, Phase::kRunning);
}

TEST(ConductorTest, WhatAnAgentLacksIsSaidOnce) {
  Bench bench;
  bench.RunToStart();
  v1::ToMaster message;
  message.mutable_hello()->set_node_name("node");
  message.mutable_hello()->set_agent_id("b");
  message.mutable_hello()->set_trouble("it may have 64 files open\n");
  bench.effects.clear();
  bench.Say(kSecond, message);
  bench.Say(ConnectionId{3}, message);
  bench.Collect();
  size_t said = 0;
  for (const Effect& effect : bench.effects) {
    const auto* print = std::get_if<Print>(&effect);
    said += print != nullptr && print->line == "node 0: it may have 64 files open\\x0a";
  }
  EXPECT_EQ(said, 1u);
}

}  // namespace
}  // namespace aimaster
