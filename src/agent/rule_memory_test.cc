#include "agent/rule_memory.h"

#include <gtest/gtest.h>

#include "detect/pattern_matcher.h"

namespace aimaster::agent {
namespace {

TEST(RuleMemoryTest, WhatWasGivenBackCanBeLoadedAgain) {
  PatternMatcher first;
  EXPECT_FALSE(first.is_loaded());
  ASSERT_TRUE(first.Match("CUDA error: uncorrectable ECC error encountered").line);
  EXPECT_TRUE(first.is_loaded());
  GiveBackBuiltInDatabases();
  PatternMatcher second;
  EXPECT_EQ(second.Match("CUDA error: uncorrectable ECC error encountered").line,
            first.Match("CUDA error: uncorrectable ECC error encountered").line);
  EXPECT_EQ(second.error(), "");
}

}  // namespace
}  // namespace aimaster::agent
