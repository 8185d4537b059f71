#include "shim/launch.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace aimaster {
namespace {

using Strings = std::vector<std::string>;

std::string Join(const Strings& strings) {
  std::string bytes;
  for (const std::string& string : strings) bytes.append(string).push_back('\0');
  return bytes;
}

const Strings kGood = {"aimaster-launch 1",
                       "instance=a",
                       "attempt=3",
                       "stop_grace_ms=10",
                       "log_dir=/l",
                       "ranks=2",
                       "rank=4",
                       "local=0",
                       "cwd=/",
                       "argc=2",
                       "python",
                       "",
                       "envc=1",
                       "A=b",
                       "rank=5",
                       "local=1",
                       "cwd=/x",
                       "argc=1",
                       "argc=9",
                       "envc=0",
                       "end"};

std::string Problem(std::string bytes) {
  Launch launch;
  const char* problem = ParseLaunch(bytes.data(), bytes.size(), &launch);
  FreeLaunch(&launch);
  return problem ? problem : "";
}

std::string ProblemWith(size_t index, const std::string& string) {
  Strings strings = kGood;
  strings[index] = string;
  return Problem(Join(strings));
}

TEST(Launch, MayNameALease) {
  Strings strings = kGood;
  strings.insert(strings.begin() + 3, {"lease=/n/lease", "orphan_timeout_ms=4294967295"});
  std::string bytes = Join(strings);
  Launch launch;
  ASSERT_EQ(ParseLaunch(bytes.data(), bytes.size(), &launch), nullptr);
  EXPECT_STREQ(launch.lease, "/n/lease");
  EXPECT_EQ(launch.orphan_timeout_ms, 4294967295u);
  FreeLaunch(&launch);
  for (const char* bad : {"lease=relative", "lease=", "orphan_timeout_ms=x", "orphan_timeout_ms=4294967296"}) {
    strings = kGood;
    strings.insert(strings.begin() + 3, bad);
    EXPECT_NE(Problem(Join(strings)), "") << bad;
  }
}

TEST(Launch, IsReadAsItWasWritten) {
  std::string bytes = Join(kGood);
  Launch launch;
  ASSERT_EQ(ParseLaunch(bytes.data(), bytes.size(), &launch), nullptr);
  EXPECT_STREQ(launch.instance, "a");
  EXPECT_EQ(launch.attempt, 3u);
  EXPECT_EQ(launch.stop_grace_ms, 10u);
  EXPECT_STREQ(launch.log_dir, "/l");
  ASSERT_EQ(launch.rank_count, 2u);
  EXPECT_EQ(launch.ranks[0].rank, 4u);
  EXPECT_STREQ(launch.ranks[0].argv[0], "python");
  EXPECT_STREQ(launch.ranks[0].argv[1], "");
  EXPECT_EQ(launch.ranks[0].argv[2], nullptr);
  EXPECT_STREQ(launch.ranks[0].envp[0], "A=b");
  EXPECT_STREQ(launch.ranks[1].cwd, "/x");
  EXPECT_STREQ(launch.ranks[1].argv[0], "argc=9") << "a raw string is never taken for a key";
  EXPECT_EQ(launch.ranks[1].envp[0], nullptr);
  FreeLaunch(&launch);
}

TEST(Launch, ANewerAgentMayAddHints) {
  Strings strings = kGood;
  strings.insert(strings.begin() + 3, "colour=blue");
  EXPECT_EQ(Problem(Join(strings)), "");
  strings[3] = "colour";
  EXPECT_NE(Problem(Join(strings)), "");
}

TEST(Launch, EveryPrefixIsRefused) {
  const std::string bytes = Join(kGood);
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_NE(Problem(bytes.substr(0, size)), "") << size;
  EXPECT_NE(Problem(bytes + bytes), "");
}

TEST(Launch, EveryBrokenRuleIsNamed) {
  EXPECT_NE(ProblemWith(0, "aimaster-launch 2"), "");
  EXPECT_NE(ProblemWith(1, "instance="), "");
  EXPECT_NE(ProblemWith(2, "attempt=-1"), "");
  EXPECT_NE(ProblemWith(2, "attempt=99999999999999999999999"), "");
  EXPECT_NE(ProblemWith(2, "instance=b"), "");
  EXPECT_NE(ProblemWith(3, "stop_grace_ms=1s"), "");
  EXPECT_NE(ProblemWith(4, "log_dir=relative"), "");
  EXPECT_NE(ProblemWith(5, "ranks=0"), "");
  EXPECT_NE(ProblemWith(5, "ranks=1"), "");
  EXPECT_NE(ProblemWith(5, "ranks=3"), "");
  EXPECT_NE(ProblemWith(5, "ranks=1025"), "");
  EXPECT_NE(ProblemWith(6, "rank="), "");
  EXPECT_NE(ProblemWith(8, "cwd=relative"), "");
  EXPECT_NE(ProblemWith(9, "argc=0"), "");
  EXPECT_NE(ProblemWith(9, "argc=65536"), "");
  EXPECT_NE(ProblemWith(9, "argc=70000"), "");
  EXPECT_NE(ProblemWith(10, ""), "");
  EXPECT_NE(ProblemWith(15, "local=0"), "") << "two ranks would share their files";
  EXPECT_NE(ProblemWith(20, "End"), "");
}

}  // namespace
}  // namespace aimaster
