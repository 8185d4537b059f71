// What LogEvidence makes of files: whose they are, and whose lines in them.
#include "detect/log_evidence.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace aimaster {
namespace {

// In pieces of `piece` bytes.
void ReadInto(LogEvidence& evidence, const std::string& path, const std::string& text, size_t piece) {
  evidence.Begin(path);
  for (size_t at = 0; at < text.size(); at += std::min(piece, text.size() - at)) {
    evidence.Feed(std::string_view(text).substr(at, piece));
  }
  evidence.End();
}

// "rank 1 (1): UserException; train.log (nobody): ProcessKilled"
std::string Told(const LogEvidence& evidence) {
  std::string told;
  for (const LogRank& rank : evidence.Ranks()) {
    told += (told.empty() ? "" : "; ") + rank.name;
    if (rank.number) told += " (" + std::to_string(*rank.number) + ")";
    if (rank.is_nobody) told += " (nobody)";
    told += ":";
    for (const LineMatch& match : rank.matches) told += " " + match.rule;
  }
  return told;
}

class LogEvidenceTest : public testing::Test {
 protected:
  void Read(const std::string& path, const std::string& text, size_t piece = SIZE_MAX) {
    ReadInto(evidence_, path, text, piece);
  }

  PatternMatcher matcher_;
  LogEvidence evidence_{matcher_};
};

TEST_F(LogEvidenceTest, AFileIsTheRanksWhoseNameItBears) {
  Read("logs/rank1.out", "[rank7]: KeyError: 'x'\n");
  Read("logs/rank1.err", "TypeError: y\n");
  Read("logs/rank0.err", "fine\n");
  EXPECT_EQ(Told(evidence_), "rank 1 (1): UserException UserException; rank 0 (0):");
}

TEST_F(LogEvidenceTest, RanksWithoutANumberGetThatOfTheirPlace) {
  Read("ranknode-a.err", "KeyError: 'x'\n");
  Read("ranknode-b.err", "");
  Read("ranknode-b.out", "");
  Read("ranknode-c.out", "");
  EXPECT_EQ(Told(evidence_), "node-a (0): UserException; node-b (1):; node-c (2):");
}

TEST_F(LogEvidenceTest, OtherFilesAreARankEachByTheirOrder) {
  Read("a.log", "KeyError: 'x'\n");
  Read("b.log", "fine\n");
  EXPECT_EQ(Told(evidence_), "a.log (0): UserException; b.log (1):");
}

TEST_F(LogEvidenceTest, OneFileAloneIsOfAnUnknownRank) {
  Read("train.log", "KeyError: 'x'\n");
  EXPECT_EQ(Told(evidence_), "train.log: UserException");
}

TEST_F(LogEvidenceTest, BesideFilesOfRanksAnotherOneIsALaunchers) {
  Read("rank0.err", "fine\n");
  Read("launcher.log", "failed (exitcode: -9) local_rank: 0 (pid: 4711) of binary: /usr/bin/python3\n");
  EXPECT_EQ(Told(evidence_), "rank 0 (0):; launcher.log (nobody): ProcessKilled");
}

TEST_F(LogEvidenceTest, TheSameNameInTwoFoldersIsNotTheSameRank) {
  Read("w-0/rank0.err", "KeyError: 'x'\n");
  Read("w-1/rank0.err", "fine\n");
  EXPECT_EQ(Told(evidence_), "w-0/rank 0 (0): UserException; w-1/rank 0 (1):");
}

TEST_F(LogEvidenceTest, LinesOfAMixedFileAreSortedByWhoSpeaks) {
  Read("all.log",
       "[rank0]: ConnectionResetError: [Errno 104] Connection reset by peer\n"
       "[rank1]: KeyError: 'x'\n"
       "failed (exitcode: -9) local_rank: 1 (pid: 4711) of binary: /usr/bin/python3\n");
  EXPECT_EQ(Told(evidence_),
            "all.log (nobody): ProcessKilled; rank 0 (0): PeerConnectionLost; rank 1 (1): UserException");
}

TEST_F(LogEvidenceTest, ManyRanksMayBeSpreadOverSeveralMixedFiles) {
  Read("node0.log", "[rank0]: fine\n[rank1]: KeyError: 'x'\n");
  Read("node1.log", "[rank2]: fine\n[rank3]: fine\n");
  EXPECT_EQ(Told(evidence_), "rank 0 (0):; rank 1 (1): UserException; rank 2 (2):; rank 3 (3):");
}

TEST_F(LogEvidenceTest, NumbersOfOneHostAreThoseOfRanksWhereThereIsNoOtherHost) {
  const std::string full = " misc/shmutils.cc:88 NCCL WARN Error: failed to extend /dev/shm/nccl-x to 9 bytes\n";
  Read("one.log", "n1:52:33 [2]" + full + "n1:53:34 [3] NCCL INFO x\n");
  EXPECT_EQ(Told(evidence_), "rank 2 (2): SharedMemoryExhausted; rank 3 (3):");
}

TEST_F(LogEvidenceTest, NumbersOfSeveralHostsAreNot) {
  const std::string full = " misc/shmutils.cc:88 NCCL WARN Error: failed to extend /dev/shm/nccl-x to 9 bytes\n";
  Read("two.log", "n1:52:33 [0]" + full + "n2:53:34 [0] NCCL INFO x\n");
  EXPECT_EQ(Told(evidence_), "n1:52 [0]: SharedMemoryExhausted; n2:53 [0]:");
}

TEST_F(LogEvidenceTest, MembersCountRanksWhereThereIsOneKindOfThem) {
  Read("pods.log", "worker-0: fine\nworker-1: KeyError: 'x'\n");
  EXPECT_EQ(Told(evidence_), "rank 0 (0):; rank 1 (1): UserException");
}

TEST_F(LogEvidenceTest, MembersOfTwoKindsHaveNamesAlone) {
  Read("pods.log", "ps-0: fine\nworker-1: KeyError: 'x'\n");
  EXPECT_EQ(Told(evidence_), "ps-0:; worker-1: UserException");
}

TEST_F(LogEvidenceTest, TheTableOfTorchelasticBelongsToTheRanksInIt) {
  Read("torchrun.log",
       "train.py FAILED\n"
       "Failures:\n[1]:\n  rank      : 3 (local_rank: 3)\n  exitcode  : 1 (pid: 4711)\n"
       "Root Cause (first observed failure):\n[0]:\n"
       "  rank      : 2 (local_rank: 2)\n  exitcode  : -11 (pid: 4712)\n  error_file: <N/A>\n");
  EXPECT_EQ(Told(evidence_), "rank 3 (3):; rank 2 (2): SegmentationFault");
}

TEST_F(LogEvidenceTest, AnyCutOfTheBytesTellsTheSame) {
  const std::string text =
      "[rank0]: Traceback (most recent call last):\n[rank1]: 12%|# \r[rank1]: 13%|## \r[rank1]: KeyError: 'x'\n"
      "[rank0]:   File \"a.py\", line 3, in f\n[rank0]: ConnectionResetError: gone\nfatal\n";
  Read("whole.log", text);
  const std::string whole = Told(evidence_);
  EXPECT_NE(whole.find("rank 1 (1): UserException"), std::string::npos) << whole;
  for (size_t piece : {1u, 2u, 7u, 64u}) {
    LogEvidence again(matcher_);
    ReadInto(again, "whole.log", text, piece);
    EXPECT_EQ(Told(again), whole) << piece;
  }
}

TEST_F(LogEvidenceTest, ALineBeyondAllBoundsBelongsToWhoBeganIt) {
  Read("long.log", "[rank1]: " + std::string(200'000, 'x') + " KeyError\n[rank0]: KeyError: 'y'\n[rank1]: z\n", 5000);
  EXPECT_EQ(Told(evidence_), "rank 1 (1):; rank 0 (0): UserException");
}

TEST_F(LogEvidenceTest, NulBytesAndAMissingLastNewlineDoNoHarm) {
  Read("nul.log", std::string("fine\n") + std::string(5000, '\0') + "KeyError: 'x'");
  EXPECT_EQ(Told(evidence_), "nul.log: UserException");
}

TEST_F(LogEvidenceTest, AnEmptyFileIsEvidenceOfNothing) {
  Read("empty.log", "");
  EXPECT_EQ(Told(evidence_), "empty.log:");
}

}  // namespace
}  // namespace aimaster
