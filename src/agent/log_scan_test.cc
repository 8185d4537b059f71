#include "agent/log_scan.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "agent/limits.h"
#include "detect/outlived.h"

namespace aimaster::agent {
namespace {

using namespace std::chrono_literals;

constexpr const char* kEcc = "RuntimeError: CUDA error: uncorrectable ECC error encountered\n";

class LogScanTest : public testing::Test {
 protected:
  LogScanTest() { std::ofstream(path_).close(); }
  ~LogScanTest() override { std::filesystem::remove_all(folder_); }

  void Print(const std::string& text) { std::ofstream(path_, std::ios::app | std::ios::binary) << text; }
  void PrintSteps(size_t bytes) {
    std::string text;
    while (text.size() < bytes) text += "step " + std::to_string(step_++) + " loss 0.5\n";
    Print(text);
  }
  // One look of the agent, a second after the last one.
  bool Look(uint64_t budget = kScanPerLook) {
    now_ = now_ + 1s;
    file_.Look();
    return scan_.ReadOn(file_, budget, now_);
  }
  std::vector<std::string> Rules() {
    std::vector<std::string> rules;
    for (const LineMatch& match : scan_.ReadAll(file_, now_).matches) rules.push_back(match.rule);
    return rules;
  }

  static std::string MakeFolder() {
    char folder[] = "/tmp/aimaster-log-scan-XXXXXX";
    return ::mkdtemp(folder);
  }

  std::string folder_ = MakeFolder(), path_ = folder_ + "/rank0.err";
  PatternMatcher matcher_;
  LogFile file_{path_, 0};
  LogScan scan_{matcher_, "rank0.err"};
  Monotonic now_{1h};
  int step_ = 0;
};

using Strings = std::vector<std::string>;
const std::string kItWentOn(kWentOn);  // many steps have followed

TEST_F(LogScanTest, KnowsAtTheDeathWhatWasSaidBefore) {
  Look();
  Print("starting\nRuntimeError: CUDA error: uncorrec");
  Look();
  Print("table ECC error encountered\nbye");
  const LogScan::Said said = scan_.ReadAll(file_, now_);
  ASSERT_EQ(said.matches.size(), 1u);
  EXPECT_EQ(said.matches[0],
            (LineMatch{"GpuEccUncorrectable", "RuntimeError: CUDA error: uncorrectable ECC error encountered",
                       "rank0.err", 9}));
  EXPECT_EQ(said.last_line, "bye");
}

TEST_F(LogScanTest, KeepsWhatWasSaidLatelyHoweverMuchFollowed) {
  Look();
  Print(kEcc);
  for (int second = 0; second < 30; ++second) {
    PrintSteps(1 << 20);
    Look();
  }
  EXPECT_EQ(Rules(), (Strings{"GpuEccUncorrectable", kItWentOn}));
}

TEST_F(LogScanTest, KeepsTheLastWordsOfAQuietProgramHoweverOld) {
  Look();
  Print(kEcc);
  PrintSteps(10'000);
  Look();
  now_ = now_ + 5h;
  Look();
  EXPECT_EQ(Rules(), (Strings{"GpuEccUncorrectable", kItWentOn}));
}

TEST_F(LogScanTest, ForgetsWhatWasSurvived) {
  Look();
  Print(kEcc);
  Look();
  for (int minute = 0; minute < 3; ++minute) {
    PrintSteps(kLogTailMaxBytes);
    now_ = now_ + 1min;
    Look();
  }
  Print("KeyError: 'x'\n");
  EXPECT_EQ(Rules(), Strings{"UserException"});
}

TEST_F(LogScanTest, PassesOverWhatItIsTooSlowFor) {
  Look();
  Print(kEcc);
  PrintSteps(kScanBehindMax);
  Print("KeyError: 'x'\n");
  EXPECT_EQ(Rules(), Strings{"UserException"});
}

TEST_F(LogScanTest, ReadsNoMoreThanItMay) {
  Look();
  PrintSteps(100'000);
  Print(kEcc);
  EXPECT_TRUE(Look(50'000));
  EXPECT_TRUE(Look(50'000));
  EXPECT_FALSE(Look());
  EXPECT_EQ(Rules(), Strings{"GpuEccUncorrectable"});
}

TEST_F(LogScanTest, ASuccessorReadsTheLastPartAlone) {
  Print(kEcc);
  PrintSteps(kScanOnAdoption);
  Print("KeyError: 'x'\n");
  PrintSteps(1000);
  EXPECT_EQ(Rules(), (Strings{"UserException", kItWentOn}));
}

TEST_F(LogScanTest, WhatASuccessorFindsMayHaveBeenSaidJustNow) {
  Print(kEcc);
  PrintSteps(2 * kLogTailMaxBytes);
  Look();
  EXPECT_EQ(Rules(), (Strings{"GpuEccUncorrectable", kItWentOn}));
  for (int minute = 0; minute < 3; ++minute) {
    now_ = now_ + 1min;
    Look();
  }
  EXPECT_EQ(Rules(), Strings{}) << "and by now it was survived";
}

TEST_F(LogScanTest, BeginsInALargeFileWithAWholeLine) {
  PrintSteps(kScanOnAdoption);
  std::filesystem::resize_file(path_, kScanOnAdoption);
  Print(std::string(100, 'x') + "KeyError: 'x'\n");
  const LogScan::Said said = scan_.ReadAll(file_, now_);
  EXPECT_TRUE(said.matches.empty() || said.matches[0].offset > 0);
  EXPECT_TRUE(said.last_line.ends_with("KeyError: 'x'"));
}

TEST_F(LogScanTest, GoesOnWhereTheProgramCutItsFile) {
  Look();
  PrintSteps(5000);
  Print(kEcc);
  Look();
  std::filesystem::resize_file(path_, 0);
  Print("KeyError: 'x'\n");
  Look();
  EXPECT_EQ(Rules(), (Strings{"GpuEccUncorrectable", "UserException"})) << "it was said just now";
  EXPECT_EQ(scan_.ReadAll(file_, now_).last_line, "KeyError: 'x'");
}

TEST_F(LogScanTest, SaysNothingOfAFileThatIsNotThere) {
  std::filesystem::remove(path_);
  Look();
  EXPECT_TRUE(Rules().empty());
}

}  // namespace
}  // namespace aimaster::agent
