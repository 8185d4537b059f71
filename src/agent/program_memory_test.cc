#include "agent/program_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "detect/pattern_matcher.h"

namespace aimaster::agent {
namespace {

int64_t ResidentPages() {
  std::ifstream file("/proc/self/statm");
  int64_t size = 0;
  int64_t resident = 0;
  file >> size >> resident;
  return resident;
}

TEST(ProgramMemoryTest, WhatWasGivenBackComesBackWhenItIsUsed) {
  const std::string line = "CUDA error: uncorrectable ECC error encountered";
  PatternMatcher first;
  EXPECT_FALSE(first.is_loaded());
  ASSERT_TRUE(first.Match(line).line);
  EXPECT_TRUE(first.is_loaded());
  const int64_t before = ResidentPages();
  GiveBackReadOnlyPages();
  EXPECT_LT(ResidentPages(), before);
  PatternMatcher second;
  EXPECT_EQ(second.Match(line).line, first.Match(line).line);
  EXPECT_EQ(second.error(), "");
}

}  // namespace
}  // namespace aimaster::agent
