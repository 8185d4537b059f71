#include "detect/torchrun_words.h"

#include <gtest/gtest.h>

#include <string>

namespace aimaster {
namespace {

std::string Entry(int rank, const std::string& exit, const std::string& time = "2026-11-30_05:24:35") {
  const std::string number = std::to_string(rank);
  return "[" + number + "]:\n  time      : " + time + "\n  host      : vm\n  rank      : " + number +
         " (local_rank: " + number + ")\n  exitcode  : " + exit +
         "\n  error_file: <N/A>\n  traceback : To enable traceback see: https://example.org/\n";
}

std::string Table(const std::string& failures, const std::string& root) {
  return "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
         "============================================================\n"
         "train.py FAILED\n"
         "------------------------------------------------------------\n"
         "Failures:\n" +
         failures +
         "------------------------------------------------------------\n"
         "Root Cause (first observed failure):\n" +
         root + "============================================================\n";
}

constexpr const char* kNoOther = "  <NO_OTHER_FAILURES>\n";

std::optional<TorchrunFailure> Failure(uint32_t rank, uint32_t pid, int exit_code) {
  return TorchrunFailure{.torchrun = {.rank = rank, .pid = pid}, .exit_code = exit_code};
}

TEST(TorchrunWordsTest, TheOnlyProcessThatFailedIsTheOne) {
  EXPECT_EQ(FindTorchrunFailure(Table(kNoOther, Entry(3, "7 (pid: 812)"))), Failure(3, 812, 7));
  EXPECT_EQ(FindTorchrunFailure(Table(kNoOther, Entry(0, "1 (pid: 9)"))), Failure(0, 9, 1));
  EXPECT_EQ(FindTorchrunFailure(Table(kNoOther, Entry(0, "-11 (pid: 9)"))), Failure(0, 9, -11));
}

TEST(TorchrunWordsTest, WhoWasKilledGoesBeforeWhoLostItsConnectionWhateverTorchrunSawFirst) {
  EXPECT_EQ(FindTorchrunFailure(Table(Entry(1, "-9 (pid: 23449)"), Entry(0, "1 (pid: 23448)"))), Failure(1, 23449, -9));
  EXPECT_EQ(FindTorchrunFailure(Table(Entry(1, "7 (pid: 2)"), Entry(0, "1 (pid: 1)"))), Failure(1, 2, 7));
  EXPECT_EQ(FindTorchrunFailure(Table(Entry(1, "-9 (pid: 2)") + Entry(2, "1 (pid: 3)"), Entry(0, "-6 (pid: 1)"))),
            Failure(1, 2, -9))
      << "an abort is also how a library ends when a peer is gone";
}

TEST(TorchrunWordsTest, AmongEqualsTheTimeDecidesThenTorchrun) {
  const std::string later = "2026-11-30_05:24:41";
  EXPECT_EQ(FindTorchrunFailure(Table(Entry(1, "-9 (pid: 2)"), Entry(0, "7 (pid: 1)", later))), Failure(1, 2, -9));
  EXPECT_EQ(FindTorchrunFailure(Table(Entry(1, "-9 (pid: 2)"), Entry(2, "7 (pid: 3)"))), Failure(2, 3, 7));
}

TEST(TorchrunWordsTest, OfSeveralExceptionsOnlyTheirWordsTell) {
  EXPECT_EQ(FindTorchrunFailure(Table(Entry(1, "1 (pid: 2)"), Entry(0, "1 (pid: 1)"))),
            (TorchrunFailure{.torchrun = {}, .exit_code = 1}));
}

TEST(TorchrunWordsTest, WhomTorchrunStoppedIsNotTheOne) {
  EXPECT_EQ(FindTorchrunFailure(Table(Entry(0, "-15 (pid: 1)"), Entry(1, "1 (pid: 2)"))), Failure(1, 2, 1));
}

TEST(TorchrunWordsTest, LabelsAndColoursDoNotMatter) {
  std::string text;
  const std::string table = Table(kNoOther, Entry(0, "-9 (pid: 4)"));
  for (size_t start = 0; start < table.size();) {
    const size_t end = table.find('\n', start);
    text += "\x1b[31mworker-0: " + table.substr(start, end - start) + "\x1b[0m\n";
    start = end + 1;
  }
  EXPECT_EQ(FindTorchrunFailure(text), Failure(0, 4, -9));
}

TEST(TorchrunWordsTest, TheLastOfSeveralTablesCounts) {
  EXPECT_EQ(FindTorchrunFailure(Table(kNoOther, Entry(0, "-9 (pid: 4)")) + "something else\n" +
                                Table(kNoOther, Entry(1, "3 (pid: 5)"))),
            Failure(1, 5, 3));
}

// train || true; evaluate
TEST(TorchrunWordsTest, ATableThatWasNotTheEndSaysNothing) {
  const std::string table = Table(kNoOther, Entry(0, "-9 (pid: 4)"));
  EXPECT_EQ(FindTorchrunFailure(table + "Traceback (most recent call last):\nValueError: no such metric\n"),
            std::nullopt);
  EXPECT_EQ(FindTorchrunFailure(table + "error: no such metric\n"), std::nullopt);
  EXPECT_EQ(FindTorchrunFailure(table + "\n\n"), Failure(0, 4, -9));
}

TEST(TorchrunWordsTest, NobodyWhoFailedEndedWell) {
  EXPECT_EQ(FindTorchrunFailure(Table(kNoOther, Entry(0, "0 (pid: 4)"))), std::nullopt);
}

TEST(TorchrunWordsTest, ItsOwnWordsAreKnown) {
  for (const char* line : {"ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 1 "
                           "(pid: 26340) of binary: /usr/bin/python3",
                           "  exitcode  : -9 (pid: 26340)", "exitcode : -9 (pid: 2233)",
                           "  traceback : Signal 9 (SIGKILL) received by PID 26340"}) {
    EXPECT_TRUE(IsTorchrunWord(line)) << line;
  }
  for (const char* line : {"exitcode of the child: -9", "the build failed (exitcode: 2)", "  step : 4", ""}) {
    EXPECT_FALSE(IsTorchrunWord(line)) << line;
  }
}

TEST(TorchrunWordsTest, WhatIsNoTableSaysNothing) {
  EXPECT_EQ(FindTorchrunFailure(""), std::nullopt);
  EXPECT_EQ(FindTorchrunFailure("exitcode  : -9 (pid: 1)\n"), std::nullopt);
  EXPECT_EQ(FindTorchrunFailure("Root Cause (first observed failure):\n"), std::nullopt);
  for (const char* exit : {"", "nine (pid: 1)", "-9", "-9 (pid: )", "-9 (pid: x)", "99999999999999 (pid: 1)",
                           "-999 (pid: 1)", "-9 (pid: 99999999999999)"}) {
    EXPECT_EQ(FindTorchrunFailure(Table(kNoOther, Entry(0, exit))), std::nullopt) << exit;
  }
}

}  // namespace
}  // namespace aimaster
