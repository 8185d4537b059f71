// Ending ranks, and all that they left behind.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "shim/shim_test_support.h"

namespace aimaster::shim_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::vector<std::string> Script(const std::string& text) { return {"bash", "-c", text}; }
// Sleeps in small steps, so that a trap runs soon.
const std::string kIdle = "; touch ready$LOCAL; while :; do sleep 0.01; done";

TEST(Stop, ARankMayEndInItsOwnTime) {
  AttemptDirectory attempt;
  attempt.WriteLaunchOf({Script("trap 'echo saved; exit 3' TERM" + kIdle), {"sleep", "1000"}});
  Child shim(attempt.ShimCommand(), attempt / "shim.log");
  ASSERT_TRUE(Eventually([&] { return attempt.Has("ready") && attempt.Has("started.json"); }));
  shim.Signal(SIGTERM);
  ASSERT_EQ(shim.Wait(), 0);
  EXPECT_EQ(attempt.Output(0), "saved\n");
  EXPECT_EQ(attempt.Exit(0)["code"], 3);
  EXPECT_EQ(attempt.Exit(0)["stopped_by_us"], true);
  EXPECT_EQ(attempt.Exit(1)["signal"], SIGTERM);
  EXPECT_EQ(attempt.Exit(1)["stopped_by_us"], true);
  EXPECT_EQ(attempt.Json("ended.json")["stop"], "term");
}

TEST(Stop, ARankThatEndedBeforeIsNotOurDoing) {
  AttemptDirectory attempt;
  attempt.WriteLaunchOf({{"sh", "-c", "exit 5"}, {"sleep", "1000"}});
  Child shim(attempt.ShimCommand(), attempt / "shim.log");
  ASSERT_TRUE(Eventually([&] { return attempt.Has("rank0.exit.json"); })) << "an exit is visible at once";
  EXPECT_FALSE(shim.Ended());
  shim.Signal(SIGTERM);
  ASSERT_EQ(shim.Wait(), 0);
  EXPECT_EQ(attempt.Exit(0)["stopped_by_us"], false);
  EXPECT_EQ(attempt.Exit(1)["stopped_by_us"], true);
}

TEST(Stop, AStoppedRankCanObey) {
  AttemptDirectory attempt;
  attempt.WriteLaunchOf({Script("trap 'exit 4' TERM" + kIdle)});
  Child shim(attempt.ShimCommand(), attempt / "shim.log");
  ASSERT_TRUE(Eventually([&] { return attempt.Has("ready") && attempt.Has("started.json"); }));
  kill(attempt.Json("started.json")["ranks"][0]["pid"], SIGSTOP);
  shim.Signal(SIGTERM);
  ASSERT_EQ(shim.Wait(), 0);
  EXPECT_EQ(attempt.Exit(0)["code"], 4);
}

TEST(Stop, TheChildOfAWrapperHearsOfIt) {
  AttemptDirectory attempt;
  attempt.WriteLaunchOf(
      {Script("bash -c \"trap 'echo heard; exit 0' TERM; touch ready; while :; do sleep 0.01; done\"; true")});
  Child shim(attempt.ShimCommand(), attempt / "shim.log");
  ASSERT_TRUE(Eventually([&] { return attempt.Has("ready"); }));
  shim.Signal(SIGTERM);
  ASSERT_EQ(shim.Wait(), 0);
  EXPECT_EQ(attempt.Output(0), "heard\n");
  EXPECT_EQ(attempt.Exit(0)["signal"], SIGTERM);
  EXPECT_EQ(attempt.Json("ended.json")["swept"], 0);
}

TEST(Stop, AWrapperThatWaitsForItsChildIsNotOvertaken) {
  AttemptDirectory attempt;
  attempt.WriteLaunchOf(
      {Script("trap 'echo wrapper; kill -KILL $child; exit 0' TERM;"
              "bash -c \"trap 'echo child' TERM; touch ready; while :; do sleep 0.01; done\" &"
              "child=$!; touch wrapper_ready; wait")});
  Child shim(attempt.ShimCommand(), attempt / "shim.log");
  ASSERT_TRUE(Eventually([&] { return attempt.Has("ready") && attempt.Has("wrapper_ready"); }));
  shim.Signal(SIGTERM);
  ASSERT_EQ(shim.Wait(), 0);
  EXPECT_EQ(attempt.Output(0), "wrapper\n");
}

TEST(Stop, TheGraceEnds) {
  AttemptDirectory attempt;
  attempt.WriteLaunchOf({{ActorPath(), "tree", attempt / "ready"}}, 50);
  Child shim(attempt.ShimCommand(), attempt / "shim.log");
  ASSERT_TRUE(Eventually([&] { return attempt.Has("ready"); }));
  shim.Signal(SIGTERM);
  ASSERT_EQ(shim.Wait(), 0);
  EXPECT_EQ(attempt.Exit(0)["signal"], SIGKILL);
  EXPECT_EQ(attempt.Exit(0)["stopped_by_us"], true);
  EXPECT_EQ(attempt.Json("ended.json")["swept"], 2);
}

TEST(Stop, QuitCutsTheGraceShort) {
  AttemptDirectory attempt;
  attempt.WriteLaunchOf({{ActorPath(), "tree", attempt / "ready"}}, 3'600'000);
  Child shim(attempt.ShimCommand(), attempt / "shim.log");
  ASSERT_TRUE(Eventually([&] { return attempt.Has("ready"); }));
  shim.Signal(SIGTERM);
  shim.Signal(SIGHUP);
  shim.Signal(SIGINT);
  shim.Signal(SIGPIPE);
  shim.Signal(SIGQUIT);
  ASSERT_EQ(shim.Wait(), 0);
  EXPECT_EQ(attempt.Exit(0)["signal"], SIGKILL);
  EXPECT_EQ(attempt.Json("ended.json")["stop"], "kill");
}

TEST(Stop, WhatRanksLeaveBehindIsSwept) {
  AttemptDirectory attempt;
  attempt.WriteLaunchOf({Script("setsid bash -c 'trap \"\" TERM; touch ready; while :; do sleep 1; done' & "
                                "while ! test -e ready; do sleep 0.01; done")},
                        50);
  ASSERT_EQ(attempt.Run(), 0);
  EXPECT_EQ(attempt.Exit(0)["code"], 0);
  EXPECT_EQ(attempt.Exit(0)["stopped_by_us"], false);
  EXPECT_GE(attempt.Json("ended.json")["swept"], 1);
  EXPECT_EQ(attempt.Json("ended.json")["stop"], "none");
}

// A process that forks and ends, for ever, among so many others that looking at all takes longer than it lives.
// In a namespace, so that it can't outrun the test either.
TEST(Stop, NobodyOutrunsIt) {
  const std::string result = InPidNamespace([]() -> std::string {
    for (int i = 0; i < 300; ++i) {
      if (fork() == 0) {
        while (true) pause();
      }
    }
    const int bystanders = OtherProcesses();
    AttemptDirectory attempt;
    attempt.WriteLaunchOf({{ActorPath(), "evade", attempt / "ready"}}, 20);
    if (attempt.Run() != 0) return "it runs on " + attempt.Messages();
    if (!attempt.Has("ready")) return "nothing ran";
    return OtherProcesses() == bystanders ? "" : "somebody is left, or a bystander was hit";
  });
  if (result == kNoNamespace) GTEST_SKIP() << "no rights to make a pid namespace";
  EXPECT_EQ(result, "");
}

TEST(Stop, UserSignalsGoOnToTheRanks) {
  AttemptDirectory attempt;
  const std::string script = "trap 'echo one' USR1; trap 'echo two; exit 0' USR2";
  attempt.WriteLaunch({{.argv = Script(script + kIdle), .environment = {"PATH=/usr/bin:/bin", "LOCAL=0"}},
                       {.argv = Script(script + kIdle), .environment = {"PATH=/usr/bin:/bin", "LOCAL=1"}}});
  Child shim(attempt.ShimCommand(), attempt / "shim.log");
  ASSERT_TRUE(
      Eventually([&] { return attempt.Has("ready0") && attempt.Has("ready1") && attempt.Has("started.json"); }));
  shim.Signal(SIGUSR1);
  ASSERT_TRUE(Eventually([&] { return attempt.Output(0) == "one\n" && attempt.Output(1) == "one\n"; }));
  shim.Signal(SIGUSR2);
  ASSERT_EQ(shim.Wait(), 0);
  EXPECT_EQ(attempt.Output(1), "one\ntwo\n");
  EXPECT_EQ(attempt.Exit(0)["stopped_by_us"], false);
}

TEST(Stop, RanksDieWithTheirShim) {
  AttemptDirectory attempt;
  attempt.WriteLaunchOf({{"sleep", "1000"}, Script("trap '' TERM" + kIdle)});
  Child shim(attempt.ShimCommand(), attempt / "shim.log");
  ASSERT_TRUE(Eventually([&] { return attempt.Has("ready") && attempt.Has("started.json"); }));
  const json ranks = attempt.Json("started.json")["ranks"];
  shim.Signal(SIGKILL);
  EXPECT_EQ(shim.Wait(), 128 + SIGKILL);
  EXPECT_TRUE(Eventually([&] { return !Lives(ranks[0]["pid"]) && !Lives(ranks[1]["pid"]); }));
  EXPECT_EQ(attempt.Run(), 0) << "the attempt is spent";
  EXPECT_FALSE(attempt.Has("ended.json"));
}

// The whole promise, looked at from outside: the namespace holds nobody but the test itself afterwards.
TEST(Stop, FiftyTimesOfFiftyNothingIsLeft) {
  const std::string result = InPidNamespace([]() -> std::string {
    for (int i = 0; i < 50; ++i) {
      AttemptDirectory attempt;
      attempt.WriteLaunchOf({{ActorPath(), "tree", attempt / "ready"}, {ActorPath(), "evade", attempt / "ready2"}}, 20);
      Child shim(attempt.ShimCommand(), attempt / "shim.log");
      const std::string where = "time " + std::to_string(i) + ": ";
      if (!Eventually([&] { return attempt.Has("ready") && attempt.Has("ready2"); })) return where + "did not start";
      if (OtherProcesses() < 4) return where + "the test sees too few processes";
      shim.Signal(i % 2 ? SIGTERM : SIGQUIT);
      if (shim.Wait() != 0) return where + attempt.Messages();
      if (OtherProcesses() != 0) return where + std::to_string(OtherProcesses()) + " left";
      if (attempt.Exit(0)["signal"] != SIGKILL) return where + "the exit file says " + attempt.Exit(0).dump();
    }
    return "";
  });
  if (result == kNoNamespace) GTEST_SKIP() << "no rights to make a pid namespace";
  EXPECT_EQ(result, "");
}

TEST(Stop, WhatCannotBeKilledIsNamed) {
  if (geteuid() != 0) GTEST_SKIP() << "needs a set-user-id program";
  AttemptDirectory attempt;
  constexpr uid_t kNobody = 65534;
  const std::string program = attempt / "untouchable";
  fs::copy_file(ActorPath(), program);
  ASSERT_EQ(chmod(program.c_str(), 04755), 0);
  ASSERT_EQ(chmod(attempt.path().c_str(), 0777), 0);
  attempt.WriteLaunchOf({{program, "untouchable", attempt / "ready"}}, 0);
  Child shim(attempt.ShimCommand(), attempt / "shim.log", [] {
    if (setresuid(kNobody, kNobody, kNobody) != 0) _exit(98);
  });
  if (!Eventually([&] { return attempt.Has("ready") || attempt.Has("rank0.exit.json"); })) FAIL() << attempt.Messages();
  if (attempt.Has("rank0.exit.json")) GTEST_SKIP() << "set-user-id programs are not allowed here";
  ASSERT_TRUE(Eventually([&] { return attempt.Has("started.json"); }));
  const pid_t pid = attempt.Json("started.json")["ranks"][0]["pid"];
  shim.Signal(SIGTERM);
  ASSERT_TRUE(Eventually([&] { return attempt.Has("unkillable.json"); }));
  EXPECT_EQ(attempt.Json("unkillable.json")["processes"][0]["pid"], pid);
  EXPECT_EQ(attempt.Json("unkillable.json")["processes"][0]["command"], "untouchable");
  EXPECT_FALSE(shim.Ended());
  EXPECT_FALSE(attempt.Has("ended.json"));
  kill(pid, SIGKILL);
  ASSERT_EQ(shim.Wait(), 0);
  EXPECT_FALSE(attempt.Has("unkillable.json"));
  EXPECT_EQ(attempt.Exit(0)["signal"], SIGKILL);
}

}  // namespace
}  // namespace aimaster::shim_test
