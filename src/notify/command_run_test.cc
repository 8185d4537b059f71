#include "notify/command_run.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "journal/temporary_directory.h"

namespace aimaster::notify {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class CommandRunTest : public testing::Test {
 protected:
  static Sink Shell(std::string script, milliseconds timeout = 30s) {
    return {.name = "page",
            .type = SinkType::kCommand,
            .command = {"/bin/sh", "-c", std::move(script)},
            .directory = "/",
            .timeout = timeout};
  }
  Outcome Run(const Sink& sink) {
    CommandRun run(sink, {});
    while (true) {
      const auto before = Clock::now();
      std::optional<Outcome> outcome = run.Look();
      longest_look_ = std::max<Clock::duration>(longest_look_, Clock::now() - before);
      if (outcome) return *outcome;
      std::this_thread::sleep_for(5ms);
    }
  }

  Clock::duration longest_look_{};
};

TEST_F(CommandRunTest, HowItEndedIsTold) {
  EXPECT_TRUE(Run(Shell("exit 0")).delivered);
  EXPECT_EQ(Run(Shell("echo no signal; exit 3")).answer, "exit code 3: no signal");
  EXPECT_EQ(Run(Shell("kill -11 $$")).answer, "killed by signal 11");
  EXPECT_EQ(Run({.type = SinkType::kCommand, .command = {"/no/such/program"}}).answer,
            "'/no/such/program': No such file or directory");
}

TEST_F(CommandRunTest, OneThatPrintsWithoutEndHoldsNobody) {
  EXPECT_EQ(Run(Shell("exec yes", 1s)).answer, "not finished after 1.0 s: killed");
  EXPECT_LT(longest_look_, 500ms);
}

TEST_F(CommandRunTest, AllThatRunCanBeKilledAtOnce) {
  const TemporaryDirectory directory;
  const std::string file = directory / "pid";
  CommandRun run(Shell("sleep 61 & echo $! > " + file + "; wait"), {});
  pid_t pid = 0;
  while (pid == 0) std::ifstream(file) >> pid;
  KillAllCommands();
  while (!run.Look()) std::this_thread::sleep_for(1ms);
  // Gone, or a zombie that nobody has collected yet.
  const auto lives = [pid] {
    std::string line;
    std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/cmdline"), line);
    return !line.empty();
  };
  while (lives()) std::this_thread::sleep_for(1ms);
}

}  // namespace
}  // namespace aimaster::notify
