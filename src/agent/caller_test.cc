#include "agent/caller.h"

#include <gtest/gtest.h>

#include <map>

namespace aimaster::agent {
namespace {

TEST(CallerTest, ARankItsChildrenAndTheirChildrenSpeakForTheRank) {
  const std::vector<LiveRank> ranks{{{0, 0}, {0, 0}, {100, 1}}, {{0, 0}, {1, 1}, {200, 1}}};
  std::map<pid_t, pid_t> parents{{100, 1}, {200, 1}, {201, 200}, {202, 201}, {300, 1}, {400, 400}};
  const auto parent_of = [&](pid_t pid) { return parents[pid]; };
  EXPECT_EQ(FindCaller(ranks, 100, parent_of), 0u);
  EXPECT_EQ(FindCaller(ranks, 202, parent_of), 1u);
  EXPECT_EQ(FindCaller(ranks, 300, parent_of), std::nullopt) << "somebody else's program";
  EXPECT_EQ(FindCaller(ranks, 0, parent_of), std::nullopt) << "of another pid namespace";
  EXPECT_EQ(FindCaller(ranks, 400, parent_of), std::nullopt) << "a circle ends, too";
}

}  // namespace
}  // namespace aimaster::agent
