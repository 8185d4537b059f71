#include "journal/attempts_on_disk.h"

#include <gtest/gtest.h>

#include "journal/temporary_directory.h"

namespace aimaster {
namespace {

namespace fs = std::filesystem;

TEST(AttemptsOnDisk, OneLaterThanTheJournalsLastIsUnknown) {
  const TemporaryDirectory directory;
  for (const char* attempt : {"node-0/j-worker-0/0", "node-0/j-worker-0/1", "node-1/j-worker-1/0"}) {
    fs::create_directories(directory / attempt);
  }
  EXPECT_EQ(FindUnknownAttempt(directory.path(), {{"j-worker-0", Attempt{1}}, {"j-worker-1", Attempt{0}}}), fs::path());
  EXPECT_EQ(FindUnknownAttempt(directory.path(), {{"j-worker-0", Attempt{0}}, {"j-worker-1", Attempt{0}}}),
            directory / "node-0/j-worker-0/1");
  EXPECT_EQ(FindUnknownAttempt(directory.path(), {{"j-worker-0", Attempt{1}}}), directory / "node-1/j-worker-1/0");
}

TEST(AttemptsOnDisk, WhatIsNoAttemptSaysNothing) {
  const TemporaryDirectory directory;
  EXPECT_EQ(FindUnknownAttempt(directory / "nowhere", {}), fs::path());
  fs::create_directories(directory / "node-0/j-worker-0/7x");
  fs::create_directories(directory / "node-0/j-worker-0/-1");
  EXPECT_EQ(FindUnknownAttempt(directory.path(), {}), fs::path());
}

}  // namespace
}  // namespace aimaster
