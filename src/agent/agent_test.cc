// The agent with real shims and real ranks, against a master in the test's hands.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>

#include "agent/agent.h"
#include "agent/agent_test_support.h"
#include "agent/limits.h"

namespace aimaster::agent {
namespace {

using enum v1::Report::BodyCase;

// ---- one attempt ----

TEST_F(AgentTest, ARankThatExitsIsReportedWithItsCodeAndItsWords) {
  Script("echo hello; echo 'something broke' >&2; exit 7");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart();
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_TRUE(Has(kAttemptReady));
  EXPECT_EQ(Exit().code(), 7);
  EXPECT_EQ(Exit().last_error_line(), "something broke");
  EXPECT_FALSE(Exit().stopped_by_us());
  EXPECT_GT(Exit().exit_time_ns(), 0);
  EXPECT_EQ(Exit().clock_uncertainty_ns(), 0);  // this very machine
  EXPECT_EQ(End().lost_reason(), "");
  EXPECT_EQ(master->Count(kRankExited), 1u);
}

TEST_F(AgentTest, ASignalIsReportedAsASignal) {
  Script("ulimit -c 0; kill -SEGV $$");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart();
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_EQ(Exit().signal(), SIGSEGV);
  EXPECT_FALSE(Exit().out_of_memory());
}

TEST_F(AgentTest, SilentRanksThatSucceedMakeTheAttemptReady) {
  Script("exit 0");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart(0, 3);
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_TRUE(Has(kAttemptReady));
  EXPECT_EQ(master->Count(kRankExited), 3u);
  EXPECT_EQ(Exit().code(), 0);
}

TEST_F(AgentTest, NotReadyUntilTheLastRankHasPrinted) {
  Script("if [ $RANK = 1 ]; then while [ ! -e $JOB/go ]; do sleep 0.01; done; fi; echo up; exec sleep $0");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart(0, 2);
  ASSERT_TRUE(Await(kAttemptStarted));
  ASSERT_TRUE(master->Until([&] { return master->last_heartbeat.log_bytes() > 0; }));
  EXPECT_FALSE(Has(kAttemptReady));
  ASSERT_TRUE(WriteSmallFile(job_directory + "/go", ""));
  EXPECT_TRUE(Await(kAttemptReady));
}

// The master waits for this, with a restart in its hands: the next heartbeat may be a second away.
TEST_F(AgentTest, AMasterThatAsksIsToldAtOnceWhoIsSilentAndForHowLong) {
  Script(
      "echo up; if [ $RANK = 1 ]; then while [ ! -e $JOB/go ]; do sleep 0.01; done; printf '\\r'; fi; exec sleep $0");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart(0, 2);
  ASSERT_TRUE(Await(kAttemptReady));
  v1::Command look;
  look.mutable_look_now()->set_number(77);
  master->Order(look);
  ASSERT_TRUE(master->Until([&] { return master->last_heartbeat.look() == 77; }));
  ASSERT_TRUE(master->last_heartbeat.has_silent_ns());
  ASSERT_TRUE(master->Until([&] { return master->last_heartbeat.silent_ns() > 1'500'000'000; }));
  ASSERT_TRUE(WriteSmallFile(job_directory + "/go", ""));
  ASSERT_TRUE(master->Until([&] { return master->last_heartbeat.silent_ns() < 1'500'000'000; }));
  EXPECT_EQ(master->last_heartbeat.quietest_rank(), 0u) << "a carriage return of rank 1 is a sign of life";
  EXPECT_GT(master->last_heartbeat.quietest_silent_ns(), 1'500'000'000);
}

TEST_F(AgentTest, TheErrorFileIsRead) {
  Script(R"(echo '{"message":{"message":"ValueError: no","extraInfo":{"timestamp":"1700000000"}}}' )"
         "> $TORCHELASTIC_ERROR_FILE; exit 1");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart();
  ASSERT_TRUE(Await(kRankExited));
  EXPECT_EQ(Exit().error_file_message(), "ValueError: no");
  ASSERT_EQ(Exit().matches_size(), 1);
  EXPECT_EQ(Exit().matches(0).rule(), "UserException");
  EXPECT_EQ(Exit().matches(0).file(), "rank0.error.json");
  EXPECT_EQ(Exit().error_file_time_ns(), 1'700'000'000'000'000'000);
}

TEST_F(AgentTest, AProgramThatIsNotThereIsAnExecError) {
  job.clear_command();
  job.add_command("/nowhere/" + word);
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart();
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_EQ(Exit().code(), 127);
  EXPECT_NE(Exit().exec_error(), "");
}

TEST_F(AgentTest, TwoStartsAreOne) {
  Script("echo $$ >> $JOB/pids; exec sleep $0");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  for (int i = 0; i < 5; ++i) OrderStart();
  ASSERT_TRUE(Await(kAttemptStarted));
  ASSERT_TRUE(AwaitFile(job_directory + "/pids"));
  OrderStart();
  OrderStop();
  ASSERT_TRUE(Await(kAttemptEnded));
  const auto pids = ReadSmallFile(job_directory + "/pids", 1000);
  ASSERT_TRUE(pids);
  EXPECT_EQ(std::count(pids->begin(), pids->end(), '\n'), 1);
}

TEST_F(AgentTest, TheEnvironmentIsTheJobsAndTheRanksAndMarked) {
  Script("env > $JOB/env.new; mv $JOB/env.new $JOB/env");
  (*job.mutable_environment())["RANK"] = "overridden";
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart();
  ASSERT_TRUE(Await(kAttemptEnded));
  const std::string environment = "\n" + ReadSmallFile(job_directory + "/env", 100'000).value_or("");
  for (const std::string& line :
       {std::string("\nRANK=0\n"), std::string("\nAIMASTER_ATTEMPT=0\n"), "\nAIMASTER_JOB_ID=" + kJobId + "\n",
        "\nAIMASTER_INSTANCE=" + kJobId + "-worker-0\n"}) {
    EXPECT_NE(environment.find(line), std::string::npos) << line << environment;
  }
  EXPECT_EQ(environment.find("AIMASTER_BIN"), std::string::npos) << "something of ours was inherited";
}

TEST_F(AgentTest, AnExitThatNoFileTakesIsFoundInTheShimsMemory) {
  // A directory in the place of the exit file: not even root can write it.
  Script("while [ ! -e $JOB/go ]; do sleep 0.01; done; exit 7");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart();
  ASSERT_TRUE(Await(kAttemptStarted));
  ASSERT_TRUE(MakeDirectories(Directory().File("rank0.exit.json") + "/in_the_way"));
  ASSERT_TRUE(WriteSmallFile(job_directory + "/go", ""));
  ASSERT_TRUE(Await(kRankExited));
  EXPECT_EQ(Exit().code(), 7);
  EXPECT_EQ(Exit().lost_reason(), "");
  std::filesystem::remove_all(Directory().File("rank0.exit.json"));
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_EQ(End().lost_reason(), "");
}

TEST_F(AgentTest, WhatItCouldNotWatchIsNotStarted) {
  Script("exec sleep $0");
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  const rlimit few{40, 40};
  ASSERT_EQ(::prlimit(agent, RLIMIT_NOFILE, &few, nullptr), 0);
  OrderStart(0, 100);
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_EQ(Exit().exec_errno(), EMFILE);
  EXPECT_NE(Exit().exec_error().find("may have 40 files open and would need 3"), std::string::npos)
      << Exit().exec_error();
  EXPECT_FALSE(Has(kAttemptStarted));
  OrderStart(1);
  EXPECT_TRUE(Await(kAttemptStarted, 1)) << "one is not too many";
}

// ---- stopping ----

TEST_F(AgentTest, AStopEndsTheRank) {
  Script("echo up; exec sleep $0");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart();
  ASSERT_TRUE(Await(kAttemptReady));
  OrderStop();
  OrderStop();
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_EQ(Exit().signal(), SIGTERM);
  EXPECT_TRUE(Exit().stopped_by_us());
  EXPECT_EQ(End().lost_reason(), "");
  EXPECT_TRUE(FindProcesses(word).empty());
}

TEST_F(AgentTest, AStopAtOnceDoesNotWaitForTheStubborn) {
  job.set_stop_grace_ms(600'000);
  Script("trap '' TERM; echo up; while :; do sleep 0.05; done");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart();
  ASSERT_TRUE(Await(kAttemptReady));
  OrderStop();
  OrderStop(0, true);
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_EQ(Exit().signal(), SIGKILL);
  EXPECT_TRUE(Exit().stopped_by_us());
}

TEST_F(AgentTest, AStopThatOvertakesItsStartPreventsIt) {
  Script("touch $JOB/ran; exec sleep $0");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStop();
  ASSERT_TRUE(Await(kAttemptEnded));
  master->reports.clear();
  OrderStart();
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_FALSE(Has(kAttemptStarted));
  KillAgent(SIGKILL);
  master->reports.clear();
  StartAgent();
  ASSERT_TRUE(Await(kAttemptEnded)) << "the next agent knows it too";
  OrderStart();
  OrderStart(1);
  ASSERT_TRUE(Await(kAttemptStarted, 1)) << "it is no obstacle to the next attempt";
  EXPECT_FALSE(Has(kAttemptStarted, 0));
}

TEST_F(AgentTest, AStopInTheVeryMomentOfTheStartLosesNothing) {
  Script("exec sleep $0");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  for (uint32_t attempt = 0; attempt < 10; ++attempt) {
    OrderStart(attempt);
    OrderStop(attempt);
    ASSERT_TRUE(Await(kAttemptEnded, attempt));
    EXPECT_EQ(End(attempt).lost_reason(), "");
    EXPECT_TRUE(FindProcesses(word).empty());
  }
}

TEST_F(AgentTest, OnlyUserSignalsArePassedOn) {
  Script("trap 'touch $JOB/usr1' USR1; touch $JOB/up; while :; do sleep 0.01; done");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart();
  ASSERT_TRUE(AwaitFile(job_directory + "/up"));
  v1::Command command;
  command.mutable_signal_instances()->set_signal(SIGKILL);
  master->Order(command);
  command.mutable_signal_instances()->set_signal(SIGUSR1);
  master->Order(command);
  EXPECT_TRUE(AwaitFile(job_directory + "/usr1"));
  EXPECT_FALSE(Has(kRankExited));
}

TEST_F(AgentTest, ADeafShimIsKilledAndSweptAfter) {
  Script("setsid sleep $0 & echo up; exec sleep $0");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart();
  ASSERT_TRUE(Await(kAttemptReady));
  const pid_t shim = ShimPid();
  if (::ptrace(PTRACE_SEIZE, shim, 0, 0) != 0) GTEST_SKIP() << "nothing may be traced here";
  ASSERT_EQ(::ptrace(PTRACE_INTERRUPT, shim, 0, 0), 0);
  OrderStop(0, true);
  OrderStop(0, true);
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_EQ(End().lost_reason(), "its shim did not react to a stop at once and was killed");
  EXPECT_TRUE(FindProcesses(word).empty());
}

// ---- ports, evidence, logs ----

TEST_F(AgentTest, AHeldPortIsRankZerosAlone) {
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return master->heartbeats > 0; }));
  v1::Command command;
  command.mutable_reserve_port()->set_reservation(1);
  command.mutable_reserve_port()->set_hold(true);
  master->Order(command);
  ASSERT_TRUE(Await(kPortReserved));
  const auto port = static_cast<uint16_t>(Find(kPortReserved).port_reserved().port());
  const auto bind_to = [port](bool reuse) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = reuse ? 1 : 0;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    const bool bound =
        ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && (!reuse || ::listen(fd, 1) == 0);
    ::close(fd);
    return bound;
  };
  EXPECT_FALSE(bind_to(false)) << "a stranger got it";
  EXPECT_TRUE(bind_to(true)) << "rank 0 did not get it";
}

TEST_F(AgentTest, AsManyPortsAreReservedAsAreAskedFor) {
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return master->heartbeats > 0; }));
  v1::Command command;
  command.mutable_reserve_port()->set_reservation(1);
  command.mutable_reserve_port()->set_hold(true);
  command.mutable_reserve_port()->set_count(3);
  master->Order(command);
  master->Order(command);
  ASSERT_TRUE(master->Until([&] { return master->Count(kPortReserved) == 2; }));
  std::set<std::string> answers;
  for (const v1::Report& report : master->reports) {
    if (report.has_port_reserved()) answers.insert(report.port_reserved().SerializeAsString());
  }
  EXPECT_EQ(answers.size(), 1u) << "an order that comes twice gets one answer";
  const v1::PortReserved& reserved = Find(kPortReserved).port_reserved();
  EXPECT_EQ(std::set<uint32_t>(reserved.ports().begin(), reserved.ports().end()).size(), 3u);
  EXPECT_EQ(reserved.port(), reserved.ports(0));
}

TEST_F(AgentTest, WhatHappenedBeneathATorchrunIsReportedInItsPlace) {
  Script(
      "cat >&2 <<END\nFailures:\n[1]:\n  time      : 2026-11-30_05:24:35\n  rank      : 1 (local_rank: 1)\n"
      "  exitcode  : -9 (pid: 23449)\nRoot Cause (first observed failure):\n[0]:\n  time      : 2026-11-30_05:24:35\n"
      "  rank      : 0 (local_rank: 0)\n  exitcode  : 1 (pid: 23448)\nEND\nexit 1");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart();
  ASSERT_TRUE(Await(kRankExited));
  EXPECT_EQ(Exit().signal(), SIGKILL);
  EXPECT_EQ(Exit().torchrun().rank(), 1u);
  EXPECT_EQ(Exit().torchrun().pid(), 23449u);
}

TEST_F(AgentTest, EvidenceComesAfterTheExitsThatHadHappened) {
  Script("while [ ! -e $JOB/go ]; do sleep 0.01; done; exit 1");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart(0, 4);
  ASSERT_TRUE(Await(kAttemptStarted));
  ASSERT_TRUE(WriteSmallFile(job_directory + "/go", ""));
  // A child of this test may be dead before the agent has looked; so all four are, here.
  ASSERT_TRUE(master->Until([&] { return FindProcesses(word).empty(); }));
  v1::Command command;
  command.mutable_collect_evidence()->set_collection(3);
  master->Order(command);
  ASSERT_TRUE(Await(kEvidenceCollected));
  size_t exits_before = 0;
  for (const v1::Report& report : master->reports) {
    if (report.has_evidence_collected()) break;
    exits_before += report.has_rank_exited();
  }
  EXPECT_EQ(exits_before, 4u);
}

TEST_F(AgentTest, ARankThatIsWritingItsCoreIsSeen) {
  rlimit limit{};
  ::getrlimit(RLIMIT_CORE, &limit);
  if (limit.rlim_max == 0) GTEST_SKIP() << "no core files here: the hard limit of their size is 0";
  Script(
      "ulimit -c unlimited; exec python3 -c \"import os,sys; b=bytearray(b'x')*(600<<20); "
      "print('up',flush=True); sys.stdin.read(); os.abort()\" $0");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart();
  ASSERT_TRUE(Await(kAttemptReady));
  // Asks again after each answer until it is over.
  uint32_t asked = 0;
  ASSERT_TRUE(master->Until([&] {
    if (master->Count(kEvidenceCollected) == asked) {
      v1::Command command;
      command.mutable_collect_evidence()->set_collection(++asked);
      master->Order(command);
    }
    return Has(kRankExited);
  }));
  EXPECT_EQ(Exit().signal(), SIGABRT);
  if (!Exit().core_dumped()) GTEST_SKIP() << "the system wrote no core file";
  EXPECT_GT(Exit().dump_start_ns(), 0);
  EXPECT_LE(Exit().dump_start_ns(), Exit().exit_time_ns());
  bool was_named = false;
  for (const v1::Report& report : master->reports) {
    was_named = was_named || report.evidence_collected().dumping_core_size() == 1;
  }
  EXPECT_TRUE(was_named);
}

TEST_F(AgentTest, AGigabyteOfOutputStaysWithinItsBound) {
  job.set_log_max_bytes(64 << 20);
  Script("head -c 1000000000 /dev/zero; echo; echo the end; exit 3");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart();
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_EQ(Exit().code(), 3);
  EXPECT_EQ(Exit().last_error_line(), "the end");
  struct stat status{};
  const std::string path = Directory().RankFile(0, ".out");
  EXPECT_TRUE(master->Until([&] {
    return ::stat(path.c_str(), &status) == 0 && static_cast<uint64_t>(status.st_blocks) * 512 <= 64u << 20;
  }));
  EXPECT_EQ(status.st_size, 1'000'000'009);
}

TEST_F(AgentTest, OutputGoesToTheJobsLogDirectoryWhenItHasOne) {
  job.set_log_directory(job_directory + "/logs");
  Script("echo hello");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart();
  ASSERT_TRUE(Await(kAttemptEnded));
  const std::string path = job_directory + "/logs/" + kJobId + "-worker-0/0/rank0.out";
  EXPECT_EQ(ReadSmallFile(path, 100), "hello\n");
  EXPECT_EQ(Directory().ReadClaim()->log_directory, job_directory + "/logs/" + kJobId + "-worker-0/0");
}

TEST_F(AgentTest, AWrongCommandLineIsSaidAndNotTriedAgain) {
  StartMaster();
  StartAgent({"--bogus"});
  EXPECT_EQ(WaitForAgent(), kExitUsage);
}

}  // namespace
}  // namespace aimaster::agent
