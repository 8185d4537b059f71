// An agent whose shims, master or predecessor die or come back, on real processes.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "agent/agent.h"
#include "agent/agent_test_support.h"
#include "agent/limits.h"

namespace aimaster::agent {
namespace {

using enum v1::Report::BodyCase;

// ---- the agent dies ----

TEST_F(AgentTest, AKilledAgentIsFollowedByOneThatTakesOver) {
  Script("echo up; while [ ! -e $JOB/go ]; do sleep 0.01; done; echo 'bad end' >&2; exit 7");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart();
  ASSERT_TRUE(Await(kAttemptReady));
  const pid_t rank = RankPid(), shim = ShimPid();
  KillAgent(SIGKILL);
  master->reports.clear();
  StartAgent();
  ASSERT_TRUE(Await(kAttemptReady));
  EXPECT_EQ(RankPid(), rank);
  EXPECT_EQ(ShimPid(), shim);
  ASSERT_EQ(master->hellos.back().live_size(), 1);
  ASSERT_TRUE(WriteSmallFile(job_directory + "/go", ""));
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_EQ(Exit().code(), 7);
  EXPECT_EQ(Exit().last_error_line(), "bad end");
  EXPECT_EQ(End().lost_reason(), "");
}

TEST_F(AgentTest, WhatHappensWithoutAnAgentIsToldByTheNext) {
  Script("echo up; while [ ! -e $JOB/go ]; do sleep 0.01; done; exit 9");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart();
  ASSERT_TRUE(Await(kAttemptStarted));
  KillAgent(SIGKILL);
  master->reports.clear();
  ASSERT_TRUE(WriteSmallFile(job_directory + "/go", ""));
  ASSERT_TRUE(AwaitFile(Directory().File("ended.json")));
  StartAgent();
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_EQ(Exit().code(), 9);
  EXPECT_TRUE(Has(kAttemptStarted));
  OrderStart();  // comes again since its effect was not known
  KillAgent(SIGTERM);
  EXPECT_TRUE(FindProcesses(word).empty());
}

TEST_F(AgentTest, AnAgentThatLeavesLeavesTheRanksAlone) {
  Script("echo up; exec sleep $0");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart();
  ASSERT_TRUE(Await(kAttemptReady));
  ::kill(agent, SIGTERM);
  EXPECT_EQ(WaitForAgent(), 0);
  EXPECT_FALSE(FindProcesses(word).empty());
  StartAgent();
  ASSERT_TRUE(master->Until([&] { return master->hellos.size() == 2; }));
  EXPECT_EQ(master->hellos.back().live_size(), 1);
}

TEST_F(AgentTest, OneNodeHasOneAgent) {
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  const pid_t first = std::exchange(agent, 0);
  StartAgent();
  EXPECT_EQ(WaitForAgent(), kExitNodeTaken);
  agent = first;
}

TEST_F(AgentTest, WhoseLockWasReplacedLeavesTheNodeToTheNext) {
  Script("echo up; exec sleep $0");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart();
  ASSERT_TRUE(Await(kAttemptReady));
  const pid_t rank = RankPid();
  std::filesystem::remove(job_directory + "/nodes/node-0/agent.lock");
  const pid_t first = agent;
  StartAgent();
  const pid_t second = std::exchange(agent, first);
  EXPECT_EQ(WaitForAgent(), kExitNodeTaken);
  agent = second;
  ASSERT_TRUE(master->Until([&] { return master->hellos.size() >= 2; }));
  EXPECT_EQ(master->hellos.back().live_size(), 1);
  EXPECT_EQ(::kill(rank, 0), 0) << "what runs there goes on";
  EXPECT_FALSE(Has(kAttemptEnded));
}

// ---- the master has forgotten something, or knows better ----

TEST_F(AgentTest, ASuccessorStartsWhenItsPredecessorHasBeenEnded) {
  Script("trap '' TERM; echo up; while :; do sleep 0.01; done");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart(0);
  ASSERT_TRUE(Await(kAttemptReady, 0));
  const pid_t former = RankPid();
  OrderStart(1);
  ASSERT_TRUE(Await(kAttemptStarted, 1));
  ASSERT_TRUE(Has(kAttemptEnded, 0)) << "two lives of one rank";
  EXPECT_NE(::kill(former, 0), 0);
}

TEST_F(AgentTest, AStartThatComesTooLateIsToldToHaveFailed) {
  Script("echo up; exec sleep $0");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart(3);
  ASSERT_TRUE(Await(kAttemptReady, 3));
  OrderStart(1);
  ASSERT_TRUE(Await(kAttemptEnded, 1));
  EXPECT_NE(End(1).lost_reason().find("attempt 3"), std::string::npos) << End(1).lost_reason();
  EXPECT_FALSE(Has(kAttemptStarted, 1));
  EXPECT_FALSE(Has(kAttemptEnded, 3));
}

// ---- the shim dies ----

TEST_F(AgentTest, WhatALostShimLeftIsSweptHoweverItHides) {
  // A grandchild in a session of its own, one without any of our variables, and one that is both and a daemon.
  Script(
      "setsid sleep $0 & env -i /bin/sleep $0 & (env -i /usr/bin/setsid /bin/sleep $0 &) ; sleep 0.1; echo up; wait");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart();
  ASSERT_TRUE(Await(kAttemptReady));
  ASSERT_TRUE(AwaitFile(Directory().File("descendants")));
  ASSERT_GE(FindProcesses(word).size(), 4u);
  ::kill(ShimPid(), SIGKILL);
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_TRUE(FindProcesses(word).empty());
  EXPECT_NE(Exit().lost_reason(), "");
  EXPECT_EQ(End().lost_reason(), "its shim was killed by signal 9");
  master->reports.clear();
  OrderStart();
  ASSERT_TRUE(Await(kAttemptEnded)) << "it is never started again";
  EXPECT_TRUE(FindProcesses(word).empty());
}

TEST_F(AgentTest, AShimThatDiedTogetherWithItsAgentIsFoundLost) {
  Script("echo up; exec sleep $0");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart();
  ASSERT_TRUE(Await(kAttemptReady));
  const pid_t shim = ShimPid();
  KillAgent(SIGKILL);
  ::kill(shim, SIGKILL);
  master->reports.clear();
  StartAgent();
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_NE(Exit().lost_reason(), "");
  EXPECT_NE(End().lost_reason(), "");
  EXPECT_TRUE(FindProcesses(word).empty());
  KillAgent(SIGKILL);
  master->reports.clear();
  StartAgent();
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_NE(Exit().lost_reason(), "") << "a third agent says the same";
}

TEST_F(AgentTest, AfterARestartOfTheMachineNothingIsSwept) {
  Claim claim{.key = {0, 0},
              .job_id = kJobId,
              .instance_name = kJobId + "-worker-0",
              .boot_id = "another boot",
              .log_directory = Directory().path(),
              .ranks = {{0, 0}, {1, 1}}};
  ASSERT_TRUE(MakeDirectories(Directory().path()));
  ASSERT_TRUE(WriteSmallFile(Directory().File("claim.json"), FormatClaim(claim)));
  ASSERT_TRUE(WriteSmallFile(Directory().File("rank1.exit.json"), R"({"code":3,"signal":null,"time_ns":5})"));
  Script("true");
  StartBoth();
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_EQ(End().lost_reason(), "the node was restarted");
  ASSERT_EQ(master->Count(kRankExited), 2u);
  EXPECT_EQ(master->reports[0].rank_exited().code(), 3);
  EXPECT_EQ(master->reports[1].rank_exited().lost_reason(), "the node was restarted");
}

// ---- the master goes and comes ----

TEST_F(AgentTest, ANewMasterHearsWhatTheOldOneDidNotAcknowledge) {
  Script("exit 7");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  master->acknowledges = false;
  OrderStart();
  ASSERT_TRUE(Await(kAttemptEnded));
  master.reset();
  StartMaster(2);
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_TRUE(Has(kAttemptStarted));
  EXPECT_EQ(Exit().code(), 7);
  EXPECT_EQ(master->hellos[0].first_unacknowledged(), 1u);
  EXPECT_EQ(master->hellos[0].greatest_epoch(), 1u);
}

TEST_F(AgentTest, ABrokenConnectionIsMadeAgain) {
  StartBoth();
  for (size_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(master->Until([&] { return master->hellos.size() == i && master->heartbeats >= i; }));
    master->HangUp();
  }
  EXPECT_TRUE(master->Until([&] { return master->hellos.size() == 4; }));
}

TEST_F(AgentTest, AMasterOfThePastIsNotObeyed) {
  Script("exit 7");
  StartMaster(5);
  StartAgent();
  ASSERT_TRUE(master->Until([&] { return master->heartbeats > 0; }));
  master.reset();
  StartMaster(4);
  ASSERT_TRUE(master->Until([&] { return master->hellos.size() >= 2; })) << "it asks again, to be welcomed by another";
  EXPECT_EQ(master->heartbeats, 0u);
  OrderStart();
  master.reset();
  KillAgent(SIGKILL);
  StartMaster(4);
  StartAgent();  // the next agent has not forgotten
  ASSERT_TRUE(master->Until([&] { return master->hellos.size() >= 2; }));
  EXPECT_EQ(master->hellos[0].greatest_epoch(), 5u);
  EXPECT_EQ(master->heartbeats, 0u);
  master.reset();
  StartMaster(6);
  ASSERT_TRUE(master->Until([&] { return master->heartbeats > 0; }));
  EXPECT_FALSE(FileExists(Directory().path()));
}

TEST_F(AgentTest, OrdersOfAnOlderEpochAreIgnored) {
  Script("exit 7");
  StartMaster(5);
  StartAgent();
  ASSERT_TRUE(master->Until([&] { return master->heartbeats > 0; }));
  v1::Command old;
  old.set_epoch(4);
  old.mutable_reserve_port()->set_reservation(1);
  master->Order(old);
  old.set_epoch(5);
  old.mutable_reserve_port()->set_reservation(2);
  master->Order(old);
  ASSERT_TRUE(Await(kPortReserved));
  EXPECT_EQ(Find(kPortReserved).port_reserved().reservation(), 2u);
}

TEST_F(AgentTest, OrphansAreStoppedCleanly) {
  job.set_orphan_timeout_ms(300);
  Script("trap 'touch $JOB/terminated; exit 0' TERM; echo up; while :; do sleep 0.01; done");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart();
  ASSERT_TRUE(Await(kAttemptReady));
  master.reset();
  EXPECT_EQ(WaitForAgent(), 0);
  EXPECT_TRUE(FileExists(job_directory + "/terminated"));
  EXPECT_TRUE(FindProcesses(word).empty());
  const auto exit = Directory().ReadRankExit(0);
  ASSERT_TRUE(exit) << "for a master that is resumed";
  EXPECT_FALSE(exit->stopped_by_us) << "no master wanted it";
  EXPECT_GE(exit->orphaned_ms, 300);
  StartMaster(2);
  StartAgent();
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_EQ(Exit().code(), 0);
  EXPECT_GE(Exit().orphaned_ms(), 300);
}

TEST_F(AgentTest, ALonelyAgentWithoutAnythingToDoEndsToo) {
  job.set_orphan_timeout_ms(200);
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return master->heartbeats > 0; }));
  master.reset();
  EXPECT_EQ(WaitForAgent(), 0);
}

TEST_F(AgentTest, WhoIsRefusedBecauseTheJobIsOverStopsWhatRuns) {
  Script("echo up; exec sleep $0");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart();
  ASSERT_TRUE(Await(kAttemptReady));
  master->refuses_as_over = true;
  master->HangUp();
  EXPECT_EQ(WaitForAgent(), 0);
  EXPECT_TRUE(FindProcesses(word).empty());
}

TEST_F(AgentTest, AShutdownStopsWhatStillRuns) {
  Script("trap '' TERM; echo up; while :; do sleep 0.05; done");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart();
  ASSERT_TRUE(Await(kAttemptReady));
  v1::Command shutdown;
  shutdown.mutable_shutdown();
  master->Order(shutdown);
  EXPECT_EQ(WaitForAgent(), 0);
  EXPECT_TRUE(FindProcesses(word).empty());
}

TEST_F(AgentTest, NonsenseFromTheMasterIsIgnored) {
  Script("exit 7");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return master->heartbeats > 0; }));
  v1::Command bad;
  bad.mutable_start_instance()->set_instance_name("../../escaped");
  bad.mutable_start_instance()->add_ranks();
  master->Order(bad);
  master->Order(v1::Command());
  OrderStart();
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_EQ(Exit().code(), 7);
  EXPECT_FALSE(FileExists(job_directory + "/escaped"));
}

}  // namespace
}  // namespace aimaster::agent
