#include "core/rank_set.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

namespace aimaster {
namespace {

TEST(RankSetTest, RunsAreWrittenAsPeopleWriteThem) {
  EXPECT_EQ(RankSet({7, 0, 1, 2, 5, 4, 3}).Text(), "0-5,7");
  EXPECT_EQ(RankSet({1, 1, 1}).Text(), "1");
  EXPECT_EQ(RankSet({1, 1, 1}).size(), 1u);
  EXPECT_EQ(RankSet().Text(), "");
  EXPECT_EQ(RankSet({1, 3, 5, 7}).Text(2), "1,3,… (4)");
  EXPECT_EQ(RankSet({UINT32_MAX - 1, 0, UINT32_MAX}).Text(), "0,4294967294-4294967295");
}

RC_GTEST_PROP(RankSetPropertyTest, HoldsWhatWasPutIn, (const std::vector<uint8_t>& numbers)) {
  const std::set<uint32_t> wanted(numbers.begin(), numbers.end());
  const RankSet set(std::vector<uint32_t>(numbers.begin(), numbers.end()));
  std::set<uint32_t> held;
  for (const auto& [first, last] : set.runs()) {
    for (uint32_t rank = first; rank <= last; ++rank) held.insert(rank);
  }
  RC_ASSERT(held == wanted);
  RC_ASSERT(set.size() == wanted.size());
}

}  // namespace
}  // namespace aimaster
