// Log files and what an expert would say about them. The cases are data: each line of tests/data/logs/*.jsonl is one
// job's last words, as one mixed log or a log per rank, with the label, the node and the rank that have to come out.
#include "detect/log_judge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace aimaster {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class LogJudgeTest : public testing::Test {
 protected:
  void Read(const std::string& path, const std::string& text) {
    evidence_.Begin(path);
    evidence_.Feed(text);
    evidence_.End();
  }
  LogJudgement Judged(const char* exit = nullptr) {
    return JudgeLogs(evidence_.Ranks(), exit ? ParseExitCode(exit) : std::nullopt);
  }

  PatternMatcher matcher_;
  LogEvidence evidence_{matcher_};
};

std::string Lines(const json& lines) {
  std::string text;
  for (const json& line : lines) text += line.get<std::string>() + "\n";
  return text;
}

LogJudgement JudgeCase(const json& accident, PatternMatcher& matcher) {
  LogEvidence evidence(matcher);
  const auto read = [&evidence](const std::string& path, const json& lines) {
    evidence.Begin(path);
    evidence.Feed(Lines(lines));
    evidence.End();
  };
  if (accident.contains("ranks")) {
    for (const auto& [rank, lines] : accident["ranks"].items()) read("rank" + rank + ".err", lines);
  } else {
    read("job.log", accident.at("log_tail"));
  }
  const auto exit =
      accident.contains("exit_code") ? ParseExitCode(std::to_string(accident["exit_code"].get<int>())) : std::nullopt;
  return JudgeLogs(evidence.Ranks(), exit);
}

TEST(LogCasesTest, EveryLogIsJudgedAsAnExpertWould) {
  const char* source = std::getenv("AIMASTER_SOURCE");
  ASSERT_TRUE(source) << "run under ctest, or set AIMASTER_SOURCE to the source tree";
  PatternMatcher matcher;
  int cases = 0;
  for (const auto& file : fs::directory_iterator(fs::path(source) / "tests/data/logs")) {
    std::ifstream lines(file.path());
    for (std::string line; std::getline(lines, line); ++cases) {
      const json accident = json::parse(line);
      SCOPED_TRACE(line.substr(0, 400));
      const LogJudgement judgement = JudgeCase(accident, matcher);
      EXPECT_EQ(Name(judgement.label), accident.at("label").get<std::string>()) << judgement.code;
      if (accident.contains("node_suspect")) {
        EXPECT_EQ(judgement.node_suspect, accident["node_suspect"].get<bool>()) << judgement.code;
      }
      if (accident.contains("root_rank")) {
        json root = nullptr;
        if (judgement.root_rank) root = *judgement.root_rank;
        if (judgement.all_ranks) root = "all";
        EXPECT_EQ(root, accident["root_rank"]) << judgement.code;
      }
    }
  }
  EXPECT_GT(cases, 250);
}

TEST_F(LogJudgeTest, ItTellsWhatAnExpertWouldTell) {
  Read("rank0.err", "[rank0]: torch.distributed.DistBackendError: NCCL communicator was aborted on rank 0.\n");
  Read("rank1.err",
       "epoch 1\nTraceback (most recent call last):\n  File \"a.py\", line 3, in <module>\nKeyError: 'lr'\n");
  const LogJudgement judgement = Judged();
  EXPECT_EQ(judgement.label, RetryLabel::kNotRetryable);
  EXPECT_EQ(judgement.fault_class, FaultClass::kUserCode);
  EXPECT_EQ(judgement.code, "UserException");
  EXPECT_EQ(judgement.message, "KeyError: 'lr'");
  EXPECT_EQ(judgement.root_rank, 1u);
  EXPECT_EQ(judgement.root_name, "rank 1");
  ASSERT_TRUE(judgement.line);
  EXPECT_EQ(judgement.line->file, "rank1.err");
  EXPECT_EQ(judgement.line->offset, 78u);
  EXPECT_EQ(judgement.rule, "UserException");
  EXPECT_EQ(
      judgement.reasons,
      (std::vector<std::string>{
          "rank 1 has a fault of its own", "its output says: 'KeyError: 'lr'' (rank1.err)",
          "rule UserException (user, not retryable): The program raised an exception that nothing caught.",
          "rank 0 is a consequence: it says 'torch.distributed.DistBackendError: NCCL communicator was aborted on "
          "rank 0.'"}));
}

TEST_F(LogJudgeTest, AnExitCodeIsTheOnlyRanks) {
  Read("rank3.err", "step 7\n");
  EXPECT_EQ(Judged("137").code, "Sigkill");
  EXPECT_EQ(Judged("-9").code, "Sigkill");
  EXPECT_EQ(Judged("-9").message, "killed by SIGKILL (9); its last line: step 7");
  EXPECT_EQ(Judged("-9").root_rank, 3u);
  EXPECT_EQ(Judged("127").code, "ShellCommandNotFound");
  EXPECT_EQ(Judged("2").label, RetryLabel::kNotRetryable);
  EXPECT_EQ(Judged("1").label, RetryLabel::kNotRetryable);
  EXPECT_EQ(Judged().label, RetryLabel::kAmbiguous) << "nothing is known but a healthy line";
}

TEST_F(LogJudgeTest, OfSeveralRanksAnExitCodeIsHowTheJobEndedAndBlamesNoRank) {
  Read("rank0.err", "KeyError: 'x'\n");
  Read("rank1.err", "step 7\n");
  const LogJudgement judgement = Judged("-9");
  EXPECT_EQ(judgement.code, "UserException");
  EXPECT_EQ(judgement.root_rank, 0u);
  EXPECT_EQ(judgement.reasons.back(), "killed by SIGKILL (9) is how the job ended, not any one rank");
}

TEST_F(LogJudgeTest, WhereNoRankSaysMoreTheExitCodeOfTheJobCounts) {
  Read("rank0.err", "step 7\n");
  Read("rank1.err", "ConnectionResetError: [Errno 104] Connection reset by peer\n");
  EXPECT_EQ(Judged("137").code, "Sigkill");
  EXPECT_EQ(Judged("137").root_rank, std::nullopt) << "whose it was is not known";
  EXPECT_EQ(Judged("1").code, "PeerConnectionLost") << "1 says nothing";
}

TEST_F(LogJudgeTest, WhoFailsFirstInAMixedLogBegan) {
  Read("all.log",
       "[rank2]: ValueError: bad sample\n"
       "[rank0]: RuntimeError: DataLoader worker (pid 4711) is killed by signal: Aborted.\n");
  EXPECT_EQ(Judged().root_rank, 2u);
}

TEST_F(LogJudgeTest, ABrokenMachineExplainsWhatProgramsSaidBefore) {
  Read("all.log",
       "[rank2]: RuntimeError: CUDA error: unspecified launch failure\n"
       "[rank0]: RuntimeError: NCCL communicator was aborted on rank 0.\n"
       "kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, GPU has fallen off the bus.\n");
  const LogJudgement judgement = Judged();
  EXPECT_EQ(judgement.code, "GpuFellOffBus");
  EXPECT_TRUE(judgement.node_suspect);
  EXPECT_EQ(judgement.root_rank, 2u) << "the kernel names no rank, but one had a fault of its own";
}

TEST_F(LogJudgeTest, AllRanksThatFailAlikeAreAll) {
  for (int rank = 0; rank < 3; ++rank) {
    Read("rank" + std::to_string(rank) + ".err", "ModuleNotFoundError: No module named 'apex'\n");
  }
  EXPECT_TRUE(Judged().all_ranks);
  EXPECT_EQ(Judged().root_rank, std::nullopt);
}

TEST_F(LogJudgeTest, LinesWithoutANameThatTellOfSeveralRanksAlikeAreAll) {
  Read("all.log",
       "train.py: error: unrecognized arguments: --local-rank=1\n"
       "train.py: error: unrecognized arguments: --local-rank=5\n");
  EXPECT_TRUE(Judged().all_ranks);
}

TEST_F(LogJudgeTest, ALineOfALauncherNamesTheRank) {
  Read("all.log",
       "[rank0]: RuntimeError: NCCL communicator was aborted on rank 0.\n"
       "failed (exitcode: -11) local_rank: 5 (pid: 4711) of binary: /usr/bin/python3\n");
  EXPECT_EQ(Judged().root_rank, 5u);
  EXPECT_EQ(Judged().root_name, "rank 5");
}

TEST_F(LogJudgeTest, TheRankForWhichAllOthersWaitIsNamedThoughItSaysNothing) {
  for (int rank : {0, 1, 3}) {
    Read("rank" + std::to_string(rank) + ".err",
         "[E ProcessGroupNCCL.cpp:632] [Rank " + std::to_string(rank) +
             "] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=1, "
             "NumelOut=1, Timeout(ms)=600000) ran for 600031 milliseconds before timing out.\n");
  }
  EXPECT_EQ(Judged().root_rank, 2u);
  EXPECT_EQ(Judged().message, "rank 2 says nothing while 3 ranks wait for collective 9 (ALLREDUCE)");
}

TEST_F(LogJudgeTest, WhatPyTorchAddsInNobodysNameMakesNoRankTheOneToBlame) {
  std::string text = "step 9\n";
  for (int rank : {3, 1, 0}) {
    text += "[E ProcessGroupNCCL.cpp:457] [Rank " + std::to_string(rank) +
            "] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=1, "
            "NumelOut=1, Timeout(ms)=600000) ran for 600031 milliseconds before timing out.\n";
  }
  const std::string rest =
      "[E ProcessGroupNCCL.cpp:471] Some NCCL operations have failed or timed out. Due to the asynchronous nature of "
      "CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.\n"
      "[E ProcessGroupNCCL.cpp:477] To avoid data inconsistency, we are taking the entire process down.\n";
  Read("job.log", text + rest);
  EXPECT_EQ(Judged().root_rank, 2u);
}

TEST_F(LogJudgeTest, AllRanksAlikeStayAlikeBesideALineThatIsNobodys) {
  std::string text;
  for (int rank : {3, 1, 0, 2}) {
    text += "[E ProcessGroupNCCL.cpp:457] [Rank " + std::to_string(rank) +
            "] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=1, "
            "NumelOut=1, Timeout(ms)=600000) ran for 600031 milliseconds before timing out.\n";
  }
  Read("job.log", text + "[E ProcessGroupNCCL.cpp:471] Some NCCL operations have failed or timed out.\n");
  EXPECT_TRUE(Judged().all_ranks);
  EXPECT_EQ(Judged().root_rank, std::nullopt);
}

TEST_F(LogJudgeTest, WhatOthersPrintInBetweenMakesALineNoOlder) {
  std::string text = "[rank1]: KeyError: 'x'\n";
  for (int i = 0; i < 10000; ++i) text += "[rank" + std::to_string(2 + i % 6) + "]: step " + std::to_string(i) + "\n";
  text += std::string("[rank2]: ") + std::string(200'000, 'x') + "\n";
  text += "[rank1]: NCCL communicator was aborted on rank 1.\n";
  Read("all.log", text);
  EXPECT_EQ(Judged().code, "UserException");
  EXPECT_EQ(Judged().line->offset, 0u);
}

TEST_F(LogJudgeTest, TheOnlyRankWithoutAWordIsTheOneThatTheOthersLost) {
  Read("rank0.err", "ConnectionResetError: [Errno 104] Connection reset by peer\n");
  Read("rank1.err", "step 7\n");
  Read("rank2.err", "ConnectionResetError: [Errno 104] Connection reset by peer\n");
  EXPECT_EQ(Judged().root_rank, 1u);
  EXPECT_EQ(Judged().code, "PeerConnectionLost");
  EXPECT_EQ(Judged().message, "rank 1 says nothing while 2 other ranks lost a peer");
  Read("rank3.err", "step 7\n");
  EXPECT_EQ(Judged().root_rank, 0u) << "of two nobody knows which";
}

TEST_F(LogJudgeTest, RanksWithNamesAreNamed) {
  Read("ranknode-a.err", "Received 15 death signal, shutting down workers\n");
  Read("ranknode-b.err", "torch.distributed.elastic.rendezvous.api.RendezvousClosedError\n");
  EXPECT_EQ(Judged().root_rank, 0u);
  EXPECT_EQ(Judged().root_name, "node-a");
  EXPECT_EQ(Judged().reasons.front(), "node-a may have begun, or have followed");
}

TEST_F(LogJudgeTest, AnErrorOfWhichNoRuleKnowsIsMostLikelyTheProgramsOwn) {
  Read("train.log", "ERROR the recipe has no flour\n");
  EXPECT_EQ(Judged().label, RetryLabel::kNotRetryable);
  EXPECT_EQ(Judged().code, "UnknownError");
}

TEST_F(LogJudgeTest, AnEmptyLogIsNoEvidence) {
  Read("train.log", "");
  EXPECT_EQ(Judged().label, RetryLabel::kAmbiguous);
  EXPECT_EQ(Judged().fault_class, FaultClass::kUnknown);
  EXPECT_EQ(Judged().line, std::nullopt);
  EXPECT_EQ(Judged().root_name, "");
}

TEST(ParseExitCodeTest, ItIsACodeOrASignal) {
  EXPECT_EQ(ParseExitCode("137")->code, 137);
  EXPECT_EQ(ParseExitCode("0")->code, 0);
  EXPECT_EQ(ParseExitCode("-9")->signal, 9);
  for (const char* wrong : {"", "nine", "256", "-65", "1x", " 1", "-", "1.0"})
    EXPECT_FALSE(ParseExitCode(wrong)) << wrong;
}

// ---- whom others name ----

LogJudgement JudgeText(const std::string& text, const std::string& name = "train.log") {
  PatternMatcher matcher;
  LogEvidence evidence(matcher);
  evidence.Begin(name);
  evidence.Feed(text);
  evidence.End();
  return JudgeLogs(evidence.Ranks(), RankExit{.code = 1});
}

TEST(NamedRankTest, TheNumberInTheJobOutweighsTheOneOnTheNode) {
  const std::string first =
      "E0612 23:40:18.0 415 api.py:882] failed (exitcode: -9) local_rank: 1 (pid: 7102) of binary: /usr/bin/python\n";
  const std::string table =
      "Root Cause (first observed failure):\n[0]:\n  time      : 2025-06-12_23:40:17\n  host      : n2\n"
      "  rank      : 17 (local_rank: 1)\n  exitcode  : -9 (pid: 7102)\n  error_file: <N/A>\n"
      "  traceback : Signal 9 (SIGKILL) received by PID 7102\n";
  EXPECT_EQ(JudgeText(first + table).root_rank, 17u);
  EXPECT_EQ(JudgeText(first).root_rank, 1u);
}

TEST(NamedRankTest, MpirunNamesTheProcessThatFailedFirst) {
  const std::string exception =
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g()\nKeyError: 1\n";
  EXPECT_EQ(JudgeText(exception + "   Process name: [prterun-n1-4711@1,6]\n   Exit code:    1\n").root_rank, 6u);
  EXPECT_EQ(JudgeText(exception + "  Process name: [[20117,1],2]\n  Exit code:    1\n").root_rank, 2u);
  EXPECT_FALSE(JudgeText(exception + "  Process name: trainer\n").root_rank);
}

TEST(NamedRankTest, WhoIsAccusedNeedNotHaveALog) {
  const LogJudgement judgement = JudgeText(
      "[rank0]: RuntimeError: Rank 9 failed to pass monitoredBarrier in 60000 ms\n"
      "[rank1]: RuntimeError: Rank 1 successfully reached monitoredBarrier, but received errors while waiting "
      "for send/recv from rank 0. Please check rank 0 logs for faulty rank.\n");
  EXPECT_EQ(judgement.root_rank, 9u);
}

TEST(NamedRankTest, ALineThatBacksTheCauseUpMayNameTheRank) {
  const LogJudgement judgement = JudgeText(
      "WARNING:megatron.core.rerun_state_machine:Unexpected result tensor(inf, device='cuda:2') on rank 18 at "
      "iteration "
      "#15 invocation #1\nERROR:megatron.core.rerun_state_machine:Possible persistent error!\n");
  EXPECT_EQ(judgement.code, "MegatronBadResult");
  EXPECT_EQ(judgement.root_rank, 18u);
}

}  // namespace
}  // namespace aimaster
