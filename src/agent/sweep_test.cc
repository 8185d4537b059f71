#include "agent/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace aimaster::agent {
namespace {

using Pids = std::vector<pid_t>;

// The agent is 50, the lost shim was 100 (session 100), started at tick 1000.
class SweepTest : public testing::Test {
 protected:
  SweepTest() {
    Add(1, 0, 1, 1);
    Add(40, 1, 40, 10);  // the respawner
    Add(50, 40, 40, 20);
    Add(60, 1, 60, 30);  // somebody else
  }
  void Add(pid_t pid, pid_t parent, pid_t session, uint64_t ticks, bool has_marker = false, char state = 'S') {
    processes.push_back({pid, {state, parent, session, ticks}, has_marker});
  }
  Pids Found() {
    Pids pids;
    for (const ProcessIdentity& process : FindRemnants(processes, target)) pids.push_back(process.pid);
    return pids;
  }
  std::vector<RunningProcess> processes;
  SweepTarget target{.job_id = "j", .instance_name = "w", .attempt = 1, .shim = {100, 1000}, .own_pid = 50};
};

TEST_F(SweepTest, NobodyIsLeft) { EXPECT_EQ(Found(), Pids()); }

TEST_F(SweepTest, FindsByMarkerWhereverItWent) {
  Add(200, 1, 200, 2000, true);
  EXPECT_EQ(Found(), Pids{200});
}

TEST_F(SweepTest, TheMarkerNamesTheAttempt) {
  const auto environment = [](const char* attempt) {
    std::string text =
        "A=b|AIMASTER_JOB_ID=j|AIMASTER_NODE=n|AIMASTER_INSTANCE=w|AIMASTER_ATTEMPT=" + std::string(attempt) +
        "|AIMASTER_X";
    std::ranges::replace(text, '|', '\0');
    return text;
  };
  EXPECT_EQ(MarkedAttempt(environment("3"), "j", "n"), std::pair(std::string("w"), 3u));
  EXPECT_FALSE(MarkedAttempt(environment("3"), "k", "n"));
  EXPECT_FALSE(MarkedAttempt(environment("3"), "j", "m")) << "another node of this very machine";
  EXPECT_FALSE(MarkedAttempt(environment("3x"), "j", "n"));
  EXPECT_FALSE(MarkedAttempt(environment(""), "j", "n"));
  EXPECT_FALSE(MarkedAttempt("", "", ""));
}

TEST_F(SweepTest, FindsByTheShimsSession) {
  Add(200, 1, 100, 2000);
  EXPECT_EQ(Found(), Pids{200});
}

TEST_F(SweepTest, ASessionNumberThatCameRoundAgainIsAnotherSession) {
  Add(100, 1, 100, 5000);
  Add(200, 100, 100, 5001);
  EXPECT_EQ(Found(), Pids());
}

TEST_F(SweepTest, FindsByTheShimsListUnlessThePidHasAnotherHolder) {
  Add(200, 1, 200, 2000);
  Add(201, 1, 201, 2001);
  target.descendants = {{200, 2000}, {201, 1500}};
  EXPECT_EQ(Found(), Pids{200});
}

TEST_F(SweepTest, FindsOrphansThatCameToUsButNotOurLivingShims) {
  Add(200, 50, 200, 2000);
  Add(300, 50, 300, 2001);
  Add(301, 300, 300, 2002);  // a rank of the living shim
  target.own_children = {300};
  EXPECT_EQ(Found(), Pids{200});
}

TEST_F(SweepTest, FindsTheChildrenOfTheFound) {
  Add(202, 201, 202, 2002);
  Add(201, 200, 201, 2001);
  Add(200, 1, 200, 2000, true);
  EXPECT_EQ(Found(), (Pids{200, 201, 202}));
}

TEST_F(SweepTest, TheDeadAreDead) {
  Add(200, 50, 100, 2000, true, 'Z');
  EXPECT_EQ(Found(), Pids());
}

TEST_F(SweepTest, NeverTouchesItselfOrThoseAboveIt) {
  for (RunningProcess& process : processes) process.has_marker = true;
  EXPECT_EQ(Found(), Pids{60});
}

TEST_F(SweepTest, AMarkerIsTheWholeOfIt) {
  const auto has = [this](std::string text) {
    for (char& c : text) c = c == '|' ? '\0' : c;
    return HasMarker(text, target);
  };
  EXPECT_TRUE(has("A=1|AIMASTER_ATTEMPT=1|AIMASTER_JOB_ID=j|B=|AIMASTER_INSTANCE=w|"));
  EXPECT_TRUE(has("AIMASTER_ATTEMPT=1|AIMASTER_JOB_ID=j|AIMASTER_INSTANCE=w"));
  EXPECT_FALSE(has("AIMASTER_ATTEMPT=2|AIMASTER_JOB_ID=j|AIMASTER_INSTANCE=w"));
  EXPECT_FALSE(has("AIMASTER_ATTEMPT=1|AIMASTER_JOB_ID=jj|AIMASTER_INSTANCE=w"));
  EXPECT_FALSE(has("XAIMASTER_ATTEMPT=1|AIMASTER_JOB_ID=j|AIMASTER_INSTANCE=w"));
  EXPECT_FALSE(has("AIMASTER_JOB_ID=j|AIMASTER_INSTANCE=w"));
  EXPECT_FALSE(has(""));
}

}  // namespace
}  // namespace aimaster::agent
