#include "detect/launcher_words.h"

#include <gtest/gtest.h>

#include "detect/root_cause.h"

namespace aimaster {
namespace {

using namespace std::chrono_literals;

TEST(LauncherWords, WhatMpirunSaysOfADeadRankIsKnown) {
  for (const char* line : {
           "mpirun noticed that process rank 2 with PID 0 on node vm exited on signal 9 (Killed).",
           "mpirun.openmpi detected that one or more processes exited with non-zero status, thus causing",
           "--------------------------------------------------------------------------",
           "Primary job  terminated normally, but 1 process returned",
           "a non-zero exit code. Per user-direction, the job has been aborted.",
           "the job to be terminated. The first process to do so was:",
           "  Process name: [[17592,1],2]",
           "  Exit code:    3",
           "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
           "=   PID 10546 RUNNING AT vm",
           "=   EXIT CODE: 9",
           "=   CLEANING UP REMAINING PROCESSES",
           "=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES",
           "===================================================================================",
           "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)",
           "This typically refers to a problem with your application.",
           "Please see the FAQ page for debugging suggestions",
       }) {
    EXPECT_TRUE(IsLauncherWord(line)) << line;
  }
}

TEST(LauncherWords, WhatProgramsAndMpiItselfSayIsNot) {
  for (const char* line : {
           "",
           " ",
           "-",
           "=",
           "mpirun was unable to find the specified executable file, and therefore did not launch",
           "mpiexec has exited due to process rank 2 with PID 0 on",
           "MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD",
           "Abort(5) on node 2 (rank 2 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 5) - process 2",
           "Primary weights are frozen",
           "Exit code 3 of the hook",
           "the job is done",
           "=> epoch 3",
           "--- loss 0.3",
           "There are not enough slots available in the system to satisfy the 4",
       }) {
    EXPECT_FALSE(IsLauncherWord(line)) << line;
  }
}

// A launcher on node 0 and a worker on node 1, as their agents report them.
class MpiFailures : public testing::Test {
 protected:
  static RankFailure Launcher(int status, Wall time) {
    return {.rank = Rank{0},
            .instance = InstanceIndex{0},
            .node = NodeIndex{0},
            .exit = RankExit{.code = status, .signal = std::nullopt, .time = time},
            .is_launcher = true};
  }
  static RankFailure Worker(int signal, Wall time) {
    return {.rank = Rank{1},
            .instance = InstanceIndex{1},
            .node = NodeIndex{1},
            .exit = RankExit{.code = std::nullopt, .signal = signal, .time = time},
            .clock_uncertainty = 1ms,
            .mpi_rank = MpiRank{.rank = 2, .pid = 4711, .launcher_status = std::nullopt}};
  }
  static constexpr Wall kStart{1'700'000'000s};
};

TEST_F(MpiFailures, ARankOnAnotherHostIsTheCauseAndTheLauncherFollows) {
  const std::vector<RankFailure> failures{Launcher(137, kStart), Worker(9, kStart + 1ms)};
  const Judgement judgement = Judge(failures, 3);
  EXPECT_EQ(judgement.root_instance, InstanceIndex{1});
  EXPECT_EQ(judgement.root_node, NodeIndex{1});
  EXPECT_EQ(judgement.error_code, 137);
  EXPECT_EQ(judgement.fault, "Sigkill");
  EXPECT_EQ(judgement.message, "MPI rank 2: killed by SIGKILL (9)");
  ASSERT_EQ(judgement.details.size(), 2u);
  EXPECT_EQ(judgement.details[0].mpi_rank, 2u);
  EXPECT_FALSE(judgement.details[1].is_root);
  EXPECT_FALSE(judgement.details[1].mpi_rank.has_value());
}

TEST_F(MpiFailures, WhatThatRankPrintedIsInTheLaunchersOutput) {
  std::vector<RankFailure> failures{Launcher(1, kStart + 10ms), Worker(6, kStart)};
  failures[1].exit = RankExit{.code = 1, .signal = std::nullopt, .time = kStart};
  failures[0].matches = {
      {"GpuEccUncorrectable", "CUDA error: uncorrectable ECC error encountered", "rank0.err", 100},
      {"Sigkill", "mpirun noticed that process rank 3 with PID 9 on node n exited on signal 9 (Killed).", "rank0.err",
       900}};
  failures[0].last_error_line = "CUDA error: uncorrectable ECC error encountered";
  const Judgement judgement = Judge(failures, 3);
  EXPECT_EQ(judgement.root_instance, InstanceIndex{1});
  EXPECT_EQ(judgement.fault, "GpuEccUncorrectable");
  EXPECT_TRUE(judgement.node_suspect);
  EXPECT_EQ(judgement.error_code, 1);
}

TEST_F(MpiFailures, AWorkerThatDiesTakesTheLauncherAlong) {
  std::vector<RankFailure> failures{Launcher(1, kStart), Worker(9, kStart + 20ms)};
  failures[1].mpi_rank.reset();  // the worker itself, with its daemon
  const Judgement judgement = Judge(failures, 3);
  EXPECT_EQ(judgement.root_instance, InstanceIndex{1});
}

TEST_F(MpiFailures, ARankOnTheLaunchersHostIsNotMistakenForMpirun) {
  std::vector<RankFailure> failures{Launcher(3, kStart)};
  failures[0].mpi_rank = MpiRank{.rank = 1, .pid = 11, .launcher_status = 9};
  failures[0].matches = {
      {"Sigkill", "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)", "rank0.err", 0}};
  const Judgement judgement = Judge(failures, 1);
  EXPECT_EQ(judgement.error_code, 3);
  EXPECT_EQ(judgement.fault, "ExitCode");
  EXPECT_EQ(judgement.message, "MPI rank 1: exit code 3");
  EXPECT_EQ(judgement.reasons.front(), "MPI rank 1: exit code 3 (process 11 itself; the launcher passed it on as 9)");
}

TEST_F(MpiFailures, WithoutARankToBlameTheLauncherSpeaksForItself) {
  std::vector<RankFailure> failures{Launcher(137, kStart)};
  failures[0].matches = {{"Sigkill",
                          "mpirun noticed that process rank 2 with PID 0 on node vm exited on signal 9 (Killed).",
                          "rank0.err", 0}};
  const Judgement judgement = Judge(failures, 1);
  EXPECT_EQ(judgement.fault, "Sigkill");
  EXPECT_EQ(judgement.source, ErrorSource::kLog);
}

}  // namespace
}  // namespace aimaster
