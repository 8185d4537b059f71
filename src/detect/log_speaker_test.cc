// Whose words a line is: as launchers, collectors and libraries really write it.
#include "detect/log_speaker.h"

#include <gtest/gtest.h>

namespace aimaster {
namespace {

std::string Told(std::string_view line) {
  const Speaker speaker = SpeakerOf(line);
  switch (speaker.kind) {
    case Speaker::Kind::kNobody:
      return "nobody";
    case Speaker::Kind::kRank:
      return "rank " + std::to_string(speaker.number);
    case Speaker::Kind::kLocal:
      return "local " + std::to_string(speaker.number) + " on '" + speaker.host + "'";
    case Speaker::Kind::kMember:
      return speaker.stem + " " + std::to_string(speaker.number);
    case Speaker::Kind::kNamed:
      return "named " + speaker.name;
  }
  return "";
}

TEST(LogSpeakerTest, LaunchersSayWhichRankItIs) {
  EXPECT_EQ(Told("[rank3]: KeyError: 'lr'"), "rank 3");
  EXPECT_EQ(Told("[rank3] KeyError: 'lr'"), "rank 3") << "aimaster logs";
  EXPECT_EQ(Told("[rank: 3] Child process ended"), "rank 3") << "Lightning";
  EXPECT_EQ(Told("[1,3]<stderr>:KeyError: 'lr'"), "rank 3") << "mpirun --tag-output";
  EXPECT_EQ(Told("[5]<stdout>:epoch 1"), "rank 5") << "horovodrun";
  EXPECT_EQ(Told("[2] epoch 1"), "rank 2") << "mpiexec -prepend-rank";
  EXPECT_EQ(Told("  7: epoch 1"), "rank 7") << "srun --label";
  EXPECT_EQ(Told(" 7: [rank80]: epoch 1"), "rank 80") << "the inner one counts the ranks of the whole job";
  EXPECT_EQ(Told("(RayTrainWorker pid=811, ip=10.0.0.4) [rank1]: boom"), "rank 1");
  EXPECT_EQ(Told("\x1b[36m[rank4]:\x1b[0m boom"), "rank 4");
}

TEST(LogSpeakerTest, SomeNumbersCountOnOneHostOnly) {
  EXPECT_EQ(Told("[default5]:iteration 7"), "local 5 on ''");
  EXPECT_EQ(Told("node-2:915:917 [3] misc/socket.cc:47 NCCL WARN Connection closed"), "local 3 on 'node-2'");
  EXPECT_EQ(Told("[2026-04-22 21:34:20] n1:52:33 [0] misc/shmutils.cc:88 NCCL WARN Error"), "local 0 on 'n1'");
  EXPECT_NE(SpeakerOf("n1:52:33 [0] NCCL INFO a").name, SpeakerOf("n1:53:34 [0] NCCL INFO a").name)
      << "where each process sees one device alone they all have number 0";
}

TEST(LogSpeakerTest, CollectorsNameInstancesAndHosts) {
  EXPECT_EQ(Told("worker-2: boom"), "worker- 2");
  EXPECT_EQ(Told("[pod/train-worker-1/main] boom"), "train-worker- 1");
  EXPECT_EQ(Told("node01: boom"), "named node01");
  EXPECT_EQ(Told("10.0.0.4: boom"), "named 10.0.0.4");
  EXPECT_EQ(Told("(TrainController pid=79312) boom"), "named (TrainController pid=79312)");
}

TEST(LogSpeakerTest, OldProcessGroupsSayItInsideTheLine) {
  EXPECT_EQ(Told("[E ProcessGroupNCCL.cpp:563] [Rank 5] Watchdog caught collective operation timeout"), "rank 5");
  EXPECT_EQ(Told("  what():  [Rank 5] NCCL watchdog thread terminated with exception"), "rank 5");
  EXPECT_EQ(Told("[E ProcessGroupNCCL.cpp:1537] [PG ID 0 PG GUID 0(default_pg) Rank 2] Timeout"), "rank 2");
  EXPECT_EQ(Told("[E ProcessGroupNCCL.cpp:1537] [PG ID 3 PG GUID 9 Rank 1] Timeout"), "nobody")
      << "in another group than the whole job's the number is another one";
}

TEST(LogSpeakerTest, OrdinaryLinesAreNobodys) {
  for (const char* line : {"", "epoch 1 loss 0.3", "Traceback (most recent call last):", "  File \"a.py\", line 3",
                           "KeyError: 'lr'", "2025-03-01 10:00:00 INFO step 7", "loss: 3", "error: no such file"}) {
    EXPECT_EQ(Told(line), "nobody") << line;
  }
}

TEST(LogSpeakerTest, ALineMayNameTheRankThatItIsAbout) {
  EXPECT_EQ(RankNamedIn("failed (exitcode: -9) local_rank: 1 (pid: 1168) of binary: /usr/bin/python"), 1u);
  EXPECT_EQ(RankNamedIn("mpirun noticed that process rank 2 with PID 0 on node n7 exited on signal 9 (Killed)."), 2u);
  EXPECT_EQ(RankNamedIn("MPI_ABORT was invoked on rank 5 in communicator MPI_COMM_WORLD"), 5u);
  EXPECT_EQ(RankNamedIn("AssertionError: Rank 3: found NaN in local grad norm"), 3u);
  EXPECT_EQ(RankNamedIn("train.py: error: unrecognized arguments: --local-rank=6"), 6u);
  EXPECT_EQ(RankNamedIn("srun: error: gpu-12: task 3: Out Of Memory"), 3u);
  EXPECT_EQ(RankNamedIn("ProcessExitedException: process 2 terminated with signal SIGKILL"), 2u);
  EXPECT_EQ(RankNamedIn("-- Process 1 terminated with the following error:"), 1u);
  EXPECT_EQ(RankNamedIn("UNAVAILABLE: Task /job:jax_worker/replica:0/task:37 heartbeat timeout. This indicates that"),
            37u);
}

TEST(LogSpeakerTest, ALineThatNamesSeveralRanksOrNoneIsAboutNobody) {
  EXPECT_EQ(RankNamedIn("Rank 3: waits, Rank 4: waits"), std::nullopt);
  EXPECT_EQ(RankNamedIn("Rank 3 is running BROADCAST, but Rank 0 is running REDUCE"), std::nullopt);
  EXPECT_EQ(RankNamedIn("lost the connection to rank 3"), std::nullopt);
  EXPECT_EQ(RankNamedIn("ranking 7: done"), std::nullopt);
  EXPECT_EQ(RankNamedIn("Rank 99999999999: x"), std::nullopt);
  EXPECT_EQ(RankNamedIn(""), std::nullopt);
}

TEST(LogSpeakerTest, TorchelasticsTableTellsOfOneRankAfterTheOther) {
  std::optional<uint32_t> rank;
  const auto next = [&rank](std::string_view line) { return rank = RankOfTable(line, rank); };
  EXPECT_EQ(next("  host      : gpu-3"), std::nullopt);
  EXPECT_EQ(next("  rank      : 6 (local_rank: 2)"), 6u);
  EXPECT_EQ(next("  exitcode  : -9 (pid: 20511)"), 6u);
  EXPECT_EQ(next("  error_file: <N/A>"), 6u);
  EXPECT_EQ(next("  traceback : Signal 9 (SIGKILL) received by PID 20511"), 6u);
  EXPECT_EQ(next("============================================"), std::nullopt);
  EXPECT_EQ(next("  exitcode  : 1 (pid: 3)"), std::nullopt);
}

TEST(LogSpeakerTest, AFileMayBelongToARankByItsName) {
  EXPECT_EQ(RankFileOf("logs/rank3.err")->number, 3u);
  EXPECT_EQ(RankFileOf("rank12.out")->name, "rank 12");
  EXPECT_EQ(RankFileOf("rank-a.out")->name, "-a");
  EXPECT_EQ(RankFileOf("rank-a.out")->number, std::nullopt);
  EXPECT_EQ(RankFileOf("ranknode b.err")->name, "node b");
  EXPECT_EQ(RankFileOf("run/attempt_0/3/stderr.log")->number, 3u) << "torchrun --log-dir";
  for (const char* path : {"train.log", "rank3.log", "rank.err", "rank3.err.gz", "stderr.log", "logs/stderr.log", ""}) {
    EXPECT_FALSE(RankFileOf(path)) << path;
  }
}

}  // namespace
}  // namespace aimaster
