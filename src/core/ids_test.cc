#include "core/ids.h"

#include <gtest/gtest.h>

namespace aimaster {
namespace {

TEST(JobIdTest, RandomIdsParse) {
  for (uint64_t random : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}, uint64_t{0x123456789abcdef}}) {
    const JobId id = JobId::FromRandom(random);
    EXPECT_EQ(JobId::Parse(id.text()), id);
  }
}

TEST(JobIdTest, NothingElseParses) {
  for (const char* text : {"", "dlc", "dlc0123456789abcd", "dlc0123456789ab", "xlc0123456789abc", "dlc0123456789abC",
                           "dlc../../../../x", "dlc0123456789ab/"}) {
    EXPECT_FALSE(JobId::Parse(text)) << text;
  }
}

TEST(IdsTest, NextCountsUp) { EXPECT_EQ(Value(Next(Round{3})), 4u); }

}  // namespace
}  // namespace aimaster
