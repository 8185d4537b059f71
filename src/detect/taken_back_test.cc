// The words of a fault, and what the line says of them.
#include "detect/taken_back.h"

#include <gtest/gtest.h>

#include <string>

namespace aimaster {
namespace {

class TakenBackTest : public testing::Test {
 protected:
  std::string CodeOf(const std::string& line) {
    const auto rule = StandingRule(matcher_, line, matcher_.Match(line));
    return rule ? matcher_.rules().rule(*rule).code : "";
  }
  bool SaysNothing(const std::string& line) { return CodeOf(line).empty(); }

  PatternMatcher matcher_;
};

TEST_F(TakenBackTest, ACountOfZeroIsNoFault) {
  for (const std::string line :
       {"GPU 3: double-bit ECC errors = 0", "uncorrectable ECC errors (volatile): 0", "uncorrectable ECC errors 0",
        "\"uncorrectable ECC error count\": 0, \"temp\": 61", "uncorrectable ECC error events seen: 0",
        "health report: found 0 uncorrectable ECC errors on 8 devices", "0 uncorrectable ECC errors, 2 corrected",
        "Double-bit errors total: 0 (since boot)", "aggregate uncorrectable ECC errors: 0"}) {
    EXPECT_TRUE(SaysNothing(line)) << line << ": " << CodeOf(line);
  }
  for (const std::string line :
       {"Uncorrectable ECC error count = 3", "uncorrectable ECC errors: 10", "uncorrectable ECC errors: 0x1f2",
        "uncorrectable ECC error on GPU 0", "GPU 0 uncorrectable ECC error", "uncorrectable ECC error: 0000:3b:00.0",
        "double-bit ECC error, retired pages: 0", "found 1 uncorrectable ECC errors"}) {
    EXPECT_EQ(CodeOf(line), "GpuEccUncorrectable") << line;
  }
}

TEST_F(TakenBackTest, NoMeansNo) {
  for (const std::string line :
       {"dcgm: no new uncorrectable ECC errors since the last check", "GPU 5 has not fallen off the bus",
        "fallen off the bus: none", "has any GPU fallen off the bus? no", "looking for 'fallen off the bus' ... none",
        "ran for 3 days without any uncorrectable ECC errors", "GPU has fallen off the bus = false",
        "uncorrectable ECC errors: none found", "scan for \"GPU is lost\": clean"}) {
    EXPECT_TRUE(SaysNothing(line)) << line << ": " << CodeOf(line);
  }
  for (const std::string line :
       {"NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus: no response to reads",
        "not responding, GPU has fallen off the bus", "nothing to be done: the GPU has fallen off the bus",
        "NVRM: Xid (PCI:0000:3b:00): 79, pid=0, name=none, GPU has fallen off the bus."}) {
    EXPECT_EQ(CodeOf(line), "GpuFellOffBus") << line;
  }
}

TEST_F(TakenBackTest, ANegationThatIsPartOfTheFaultIsTheFault) {
  EXPECT_EQ(CodeOf("[Errno 28] No space left on device"), "DiskFull");
  EXPECT_EQ(CodeOf("nfs: server nas-1 not responding, timed out"), "NfsNotResponding");
  EXPECT_EQ(CodeOf("OSError: [Errno 107] Transport endpoint is not connected: '/mnt/oss/a'"), "NetworkFileSystemLost");
}

TEST_F(TakenBackTest, AListOfWhatAProgramLooksForIsNoFault) {
  for (const std::string line :
       {"restart_on: ['NodeNotReady', 'Evicted']",
        "config: RetryPolicy(patterns=(\"GPU has fallen off the bus\", \"Xid\"))",
        "agent --retry-on=NodeNotReady,GpuLost", "retry_on=NodeNotReady,Evicted",
        "  - \"uncorrectable ECC error encountered\"", "    'GPU has fallen off the bus',",
        "agent looks for: link flaps, GPU is lost", "transient error keywords: [uncorrectable ECC error, link down]"}) {
    EXPECT_TRUE(SaysNothing(line)) << line << ": " << CodeOf(line);
  }
  for (const std::string line :
       {"{\"level\": \"error\", \"msg\": \"uncorrectable ECC error encountered\", \"rank\": 3}",
        "node health events: ['uncorrectable ECC error on GPU 3', 'drained']",
        "[PG ID 0 Rank 3] what(): CUDA error: uncorrectable ECC error encountered"}) {
    EXPECT_EQ(CodeOf(line), "GpuEccUncorrectable") << line;
  }
}

TEST_F(TakenBackTest, ACommandOrASuppositionIsNoFault) {
  for (const std::string line :
       {"++ journalctl -k", "+ grep -c 'GPU is lost' /tmp/dmesg", "$ dmesg | egrep 'fallen off the bus|Xid'",
        "running: dmesg -T | grep -i \"fallen off the bus\"", "if the GPU has fallen off the bus, reboot the node",
        "self test: injecting \"uncorrectable ECC error encountered\"",
        "checks whether a GPU has fallen off the bus"}) {
    EXPECT_TRUE(SaysNothing(line)) << line << ": " << CodeOf(line);
  }
}

TEST_F(TakenBackTest, WhatWasIgnoredIsNoFault) {
  for (const std::string line :
       {"OSError: [Errno 116] Stale file handle (ignored, opening it again)",
        "OSError: [Errno 5] Input/output error; skipping the shard", "503 Service Unavailable - backing off for 4 s",
        "ConnectionResetError: [Errno 104] Connection reset by peer, and will be ignored",
        "ignoring OSError: [Errno 116] Stale file handle"}) {
    EXPECT_TRUE(SaysNothing(line)) << line << ": " << CodeOf(line);
  }
  EXPECT_EQ(CodeOf("OSError: [Errno 116] Stale file handle: '/nfs/ignored/a.pt'"), "NfsStale");
  EXPECT_EQ(CodeOf("OSError: [Errno 116] Stale file handle, this cannot be ignored"), "NfsStale");
}

TEST_F(TakenBackTest, AnotherFaultInTheLineStands) {
  EXPECT_EQ(CodeOf("uncorrectable ECC errors: 0, GPU has fallen off the bus: yes"), "GpuFellOffBus");
  EXPECT_EQ(CodeOf("GPU has fallen off the bus; uncorrectable ECC errors: 0"), "GpuFellOffBus");
  EXPECT_EQ(CodeOf("uncorrectable ECC errors: 0 on GPU 1, uncorrectable ECC errors: 2 on GPU 3"),
            "GpuEccUncorrectable");
}

TEST_F(TakenBackTest, TheProgramsOwnMistakesAlwaysStand) {
  EXPECT_EQ(CodeOf("ValueError: no errors expected, found: 0"), "UserException");
}

}  // namespace
}  // namespace aimaster
