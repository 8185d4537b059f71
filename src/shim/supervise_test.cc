#include "shim/supervise.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <sstream>

#include "shim/launch_format.h"
#include "shim/shim_test_support.h"

namespace aimaster::shim_test {
namespace {

using nlohmann::json;

class Supervisor : public ::testing::Test {
 protected:
  std::vector<std::string> Command(const std::string& script, std::vector<std::string> options = {}) const {
    std::vector<std::string> argv = {ShimPath(), "--supervise", "--name", "test", "--run-dir", directory_.path()};
    argv.insert(argv.end(), options.begin(), options.end());
    argv.insert(argv.end(), {"--", "/bin/bash", "-c", "cd " + directory_.path().string() + "; " + script});
    return argv;
  }
  std::filesystem::path File(const std::string& name) const { return directory_.path() / name; }
  json State() const { return json::parse(ReadFile(File("supervisor.json")), nullptr, false); }
  std::vector<double> Seconds(const std::string& name) const {
    std::istringstream lines(ReadFile(File(name)));
    std::vector<double> times;
    for (double time; lines >> time;) times.push_back(time);
    return times;
  }

  TemporaryDirectory directory_;
};

TEST_F(Supervisor, EndsWhenTheCommandIsDone) {
  EXPECT_EQ(Child(Command("exit 0"), File("log")).Wait(), 0);
  EXPECT_EQ(State()["starts"], 1);
}

TEST_F(Supervisor, APermanentErrorIsNotRepeated) {
  EXPECT_EQ(Child(Command("exit 64"), File("log")).Wait(), 64);
  EXPECT_EQ(Child(Command("exit 78"), File("log")).Wait(), 78);
  EXPECT_EQ(State()["starts"], 1);
}

TEST_F(Supervisor, ADeadCommandIsStartedAgain) {
  Child supervisor(Command("echo $$ >> starts; test $(wc -l < starts) -ge 3 && exit 0; test -e twice && exit 9;"
                           "touch twice; kill -SEGV $$"),
                   File("log"));
  EXPECT_EQ(supervisor.Wait(), 0);
  EXPECT_EQ(State()["starts"], 3);
  EXPECT_EQ(State()["pid"], supervisor.pid());
}

TEST_F(Supervisor, ItStartsAtOnceAndThenWaitsLonger) {
  Child supervisor(Command("echo $EPOCHREALTIME >> times; exit 1"), File("log"));
  ASSERT_TRUE(Eventually([&] { return Seconds("times").size() >= 5; }));
  const std::vector<double> times = Seconds("times");
  EXPECT_GE(times[2] - times[1], 0.1);
  EXPECT_GE(times[3] - times[2], 0.2);
  EXPECT_GE(times[4] - times[3], 0.5);
  ASSERT_TRUE(Eventually([&] {
    const std::string log = ReadFile(File("log"));
    return std::count(log.begin(), log.end(), '\n') == 5;
  }));
  supervisor.Signal(SIGTERM);
  EXPECT_EQ(supervisor.Wait(), 128 + SIGTERM) << "also while it waits";
}

TEST_F(Supervisor, TheFirstRestartDoesNotWait) {
  double fastest = 1;
  // A busy machine may delay one of them.
  for (int i = 0; i < 10 && fastest >= 0.1; ++i) {
    std::filesystem::remove(File("times"));
    EXPECT_EQ(Child(Command("echo $EPOCHREALTIME >> times; test $(wc -l < times) = 2"), File("log")).Wait(), 0);
    fastest = std::min(fastest, Seconds("times")[1] - Seconds("times")[0]);
  }
  EXPECT_LT(fastest, 0.1);
}

TEST_F(Supervisor, ACrashLoopEnds) {
  EXPECT_EQ(Child(Command("echo x >> starts; exit 1", {"--backoff-max-ms", "1"}), File("log")).Wait(),
            kShimExitCrashLoop);
  EXPECT_EQ(ReadFile(File("starts")).size(), 20u);
  EXPECT_NE(ReadFile(File("log")).find("giving up"), std::string::npos);
}

TEST_F(Supervisor, AFullDiskIsNoCrashLoop) {
  EXPECT_EQ(
      Child(Command("echo x >> starts; test $(wc -l < starts) -lt 30 && exit 79; exit 0", {"--backoff-max-ms", "1"}),
            File("log"))
          .Wait(),
      0);
  EXPECT_EQ(ReadFile(File("starts")).size(), 60u);
}

TEST_F(Supervisor, ACommandThatDoesNotExistIsSaidAtOnce) {
  EXPECT_EQ(Child({ShimPath(), "--supervise", "--", "/no/such"}, File("log")).Wait(), 127);
  EXPECT_NE(ReadFile(File("log")).find("/no/such: No such file"), std::string::npos) << ReadFile(File("log"));
  EXPECT_EQ(Child({ShimPath(), "--supervise", "--", "/etc/passwd"}, File("log")).Wait(), 126);
}

TEST_F(Supervisor, WrongUseIsRefused) {
  EXPECT_EQ(Child({ShimPath(), "--supervise"}, File("log")).Wait(), kShimExitUsage);
  EXPECT_EQ(Child({ShimPath(), "--supervise", "--name"}, File("log")).Wait(), kShimExitUsage);
  EXPECT_EQ(Child({ShimPath(), "--supervise", "--what", "x", "--", "true"}, File("log")).Wait(), kShimExitUsage);
}

TEST_F(Supervisor, SignalsGoOnAndTheEndIsTheCommandsOwn) {
  Child supervisor(Command("trap 'echo usr >> heard' USR1; trap 'echo term >> heard; exit 5' TERM; touch ready;"
                           "while :; do sleep 0.01; done"),
                   File("log"));
  ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(File("ready")); }));
  EXPECT_EQ(getsid(supervisor.pid()), supervisor.pid());
  supervisor.Signal(SIGHUP);
  supervisor.Signal(SIGUSR1);
  ASSERT_TRUE(Eventually([&] { return ReadFile(File("heard")) == "usr\n"; }));
  supervisor.Signal(SIGTERM);
  EXPECT_EQ(supervisor.Wait(), 5);
  EXPECT_EQ(ReadFile(File("heard")), "usr\nterm\n");
  EXPECT_EQ(State()["starts"], 1);
}

TEST_F(Supervisor, OrphansOfTheCommandAreCollected) {
  Child supervisor(Command("(sleep 0.01 & echo $! > orphan); touch ready; while :; do sleep 1; done"), File("log"));
  ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(File("ready")); }));
  const std::string orphan = "/proc/" + std::to_string(std::stoi(ReadFile(File("orphan"))));
  EXPECT_TRUE(Eventually([&] { return !std::filesystem::exists(orphan); })) << "a zombie is left";
  supervisor.Signal(SIGTERM);
  EXPECT_EQ(supervisor.Wait(), 128 + SIGTERM);
}

TEST_F(Supervisor, WhatTheCommandLeftIsNotItsBusiness) {
  EXPECT_EQ(Child(Command("sleep 1000 & echo $! > left; exit 0"), File("log")).Wait(), 0);
  const pid_t left = std::stoi(ReadFile(File("left")));
  EXPECT_TRUE(Lives(left));
  kill(left, SIGKILL);
}

}  // namespace
}  // namespace aimaster::shim_test
