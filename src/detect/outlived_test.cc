// What a job came through, and what it died of.
#include "detect/outlived.h"

#include <gtest/gtest.h>

#include <string>

#include "detect/log_evidence.h"
#include "detect/log_judge.h"
#include "detect/root_cause.h"
#include "detect/step_words.h"

namespace aimaster {
namespace {

constexpr const char* kTraceback =
    "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    main()\n";
const std::string kXid = "NVRM: Xid (PCI:0000:3b:00): 63, pid=1, name=python, Row Remapper: New row marked.\n";

std::string Steps(int from, int to, int by, const std::string& label = "") {
  std::string text;
  for (int step = from; step <= to; step += by) text += label + "step " + std::to_string(step) + " | loss 2.1\n";
  return text;
}

class OutlivedTest : public testing::Test {
 protected:
  LogJudgement Judge(const std::string& text, const std::string& name = "rank0.err") {
    LogEvidence evidence(matcher_);
    evidence.Begin(name);
    evidence.Feed(text);
    evidence.End();
    return JudgeLogs(evidence.Ranks(), RankExit{.code = 1});
  }
  PatternMatcher matcher_;
};

TEST_F(OutlivedTest, StepsAfterAnEventShowThatItWasNotTheEnd) {
  for (const std::string& steps : {Steps(9000, 9100, 100), Steps(1, 60, 1), Steps(9000, 19000, 10),
                                   std::string("iteration 120/ 5000\niteration 160/ 5000\n"),
                                   std::string(" 47%|4 | 47/100 [00:12<00:13]\r 90%|9 | 90/100 [00:24<00:13]\r")}) {
    const LogJudgement judgement = Judge(Steps(1, 9, 1) + kXid + steps + kTraceback + "KeyError: 'content'\n");
    EXPECT_EQ(judgement.code, "UserException") << steps.substr(0, 100);
    EXPECT_FALSE(judgement.node_suspect);
    EXPECT_NE(judgement.reasons.back().find("was outlived: the job went on"), std::string::npos);
  }
}

TEST_F(OutlivedTest, AnEventRightBeforeTheExceptionIsTheCause) {
  for (const std::string& between : {std::string(), Steps(9000, 9003, 1), std::string("saving\nwaiting\n"),
                                     std::string("step 9000\neval step 1\nstep 9001\neval step 2\n")}) {
    const LogJudgement judgement = Judge(Steps(8000, 9000, 10) + kXid + between + kTraceback + "KeyError: 'content'\n");
    EXPECT_EQ(judgement.code, "GpuRowRemapPending") << between;
    EXPECT_TRUE(judgement.node_suspect);
  }
}

TEST_F(OutlivedTest, WhatTheMachineExplainsIsStillTheMachines) {
  for (const std::string end :
       {"RuntimeError: CUDA error: unspecified launch failure",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "torch.distributed.DistBackendError: NCCL error in: x.cpp:20, unhandled cuda error",
        "ConnectionResetError: [Errno 104] Connection reset by peer", "ValueError: Input X contains NaN."}) {
    const LogJudgement judgement = Judge(kXid + Steps(9000, 9900, 1) + kTraceback + end + "\n");
    EXPECT_EQ(judgement.code, "GpuRowRemapPending") << end;
  }
}

TEST_F(OutlivedTest, TheEventThatComesAgainCounts) {
  const LogJudgement judgement = Judge(kXid + Steps(9000, 9900, 1) + kXid + kTraceback + "KeyError: 'content'\n");
  EXPECT_EQ(judgement.code, "GpuRowRemapPending");
}

TEST_F(OutlivedTest, AnAttemptBeforeTheLastOneIsNotJudged) {
  const std::string failed = "[rank3]: RuntimeError: CUDA error: uncorrectable ECC error encountered\n";
  for (const std::string restart :
       {"[default] Worker group FAILED. 2/3 attempts left; will restart worker group\n",
        "INFO [default] Rendezvous complete for workers. Result: restart_count=1 master_addr=n0\n",
        "[rank0]: Resuming training from checkpoint-4000\n"}) {
    const std::string last =
        "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"a.py\", line 3, in f\n[rank1]: ";
    const LogJudgement judgement = Judge(failed + restart + last + "KeyError: 'content'\n", "train.log");
    EXPECT_EQ(judgement.code, "UserException") << restart;
    EXPECT_EQ(judgement.root_rank, 1u);
    EXPECT_EQ(Judge(failed + restart + last + "RuntimeError: NCCL error: peer lost\n", "train.log").code,
              "GpuEccUncorrectable");
  }
  EXPECT_EQ(Judge(failed + "Rendezvous complete. restart_count=0\n[rank1]: KeyError: 'content'\n", "train.log").code,
            "GpuEccUncorrectable");
}

TEST_F(OutlivedTest, TheKernelsWordsAreOutlivedByTheStepsOfTheRanks) {
  const std::string text =
      "[rank0]: step 1\n" + kXid + Steps(100, 200, 5, "[rank0]: ") + "[rank0]: " +
      "Traceback (most recent call last):\n[rank0]:   File \"a.py\", line 3, in f\n[rank0]: KeyError: 3\n";
  EXPECT_EQ(Judge(text, "train.log").code, "UserException");
}

TEST_F(OutlivedTest, ARunningJobIsJudgedTheSameWay) {
  LineScanner scanner(matcher_, "rank0.err");
  scanner.Feed(kXid + Steps(1, 90, 1) + kTraceback + "KeyError: 'content'\n", 0);
  scanner.Finish();
  const RankFailure failure{.exit = RankExit{.code = 1}, .matches = scanner.Matches()};
  const Judgement judgement = aimaster::Judge(std::span(&failure, 1), 1);
  EXPECT_EQ(judgement.fault, "UserException");
  EXPECT_NE(judgement.reasons.back().find("was outlived"), std::string::npos);
}

TEST(StepWordsTest, NoLineThatTellsAStepIsPassedOver) {
  for (const std::string name : {"step", "Step", "STEP", "iter", "Iter", "iteration", "steps", "batch"}) {
    for (size_t before = 0; before < 40; ++before) {
      for (size_t behind = 0; behind < 40; ++behind) {
        const std::string line = std::string(before, ' ') + name + " 17" + std::string(behind, '.');
        ASSERT_TRUE(StepIn(line)) << line;
        EXPECT_TRUE(MayTellStep(line)) << line;
      }
    }
  }
  EXPECT_TRUE(MayTellStep(std::string(50, ' ') + "47%|4.  | 47/100 [00:12<00:13, 4.1it/s]"));
  EXPECT_FALSE(MayTellStep("loss 2.1, and nothing of what is counted"));
}

TEST(StepWordsTest, ReadsWhatProgramsCount) {
  EXPECT_EQ(StepIn("step 9000 loss 1.1")->number, 9000u);
  EXPECT_EQ(StepIn("[2025-01-01 10:00:00] iteration      120/    5000 | consumed samples: 30")->number, 120u);
  EXPECT_EQ(StepIn("{'loss': 2.1, 'global_step': 300}")->number, 300u);
  EXPECT_EQ(StepIn("Epoch 3: Step: 17, Loss: 0.4")->number, 17u);
  EXPECT_EQ(StepIn(" 47%|4.  | 47/100 [00:12<00:13, 4.1it/s]")->number, 47u);
  EXPECT_EQ(StepIn("step 1 loss 3")->way, StepIn("step 250 loss 1")->way);
  EXPECT_NE(StepIn("eval step 1")->way, StepIn("step 1")->way);
  EXPECT_FALSE(StepIn("stepping down"));
  EXPECT_FALSE(StepIn("the next step is to save"));
  EXPECT_FALSE(StepIn("loss 2.1"));
}

}  // namespace
}  // namespace aimaster
