// Taking stacks is broken off while a tool holds its targets. The tool is this program, called with --hold: it attaches
// as a debugger does, and stays.
#include "agent/stack_helper.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "agent/stack_processes.h"
#include "journal/temporary_directory.h"

namespace aimaster::agent {
namespace {

using namespace std::chrono_literals;

class StackHelperTest : public testing::Test {
 protected:
  static constexpr uint32_t kTargets = 5;

  StackHelperTest() {
    std::error_code error;
    Install("exec " + std::filesystem::read_symlink("/proc/self/exe", error).string() + " --hold $pid");
    order.tool_path = {folder.path().string()};
    for (uint32_t rank = 0; rank < kTargets; ++rank) {
      order.targets.push_back({.process = Fork(), .rank = rank, .instance = "w", .error_output = {}});
    }
  }
  ~StackHelperTest() override {
    helper.reset();  // of who is still held, the death is hidden from us
    for (const StackTarget& target : order.targets) {
      ::kill(target.process.pid, SIGKILL);
      ::waitpid(target.process.pid, nullptr, 0);
    }
  }

  void Install(const std::string& script) {
    const std::string path = folder.path() / "py-spy";
    std::ofstream(path) << "#!/bin/sh\nfor pid; do case $pid in [0-9]*) break;; esac; done\n" << script << "\n";
    ::chmod(path.c_str(), 0755);
  }
  static ProcessIdentity Fork() {
    int named[2];
    EXPECT_EQ(::pipe(named), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::prctl(PR_SET_NAME, "python3");
      (void)!::write(named[1], "x", 1);
      for (;;) ::pause();
    }
    char byte;
    (void)!::read(named[0], &byte, 1);
    ::close(named[0]);
    ::close(named[1]);
    return {pid, ReadStat(pid)->start_ticks};
  }
  std::string States() const {
    std::string states;
    for (const StackTarget& target : order.targets) states += StateOf(target.process);
    return states;
  }
  bool Until(const std::string& states) {
    for (int i = 0; i < 2000 && States() != states; ++i) {
      io.restart();
      io.run_for(5ms);
    }
    return States() == states;
  }
  void Start() {
    helper->Start(program, order, [this](Result<std::string> document) { answers.push_back(std::move(document)); });
  }
  // Until it has nothing left to do.
  void RunOut() {
    io.restart();
    io.run();
  }

  TemporaryDirectory folder;
  const std::string program = std::string(std::getenv("AIMASTER_BIN")) + "/aimaster-agent";
  StackOrder order{.capture = 1, .timeout = 60s, .node = "n", .tool_path = {}, .targets = {}};
  boost::asio::io_context io;
  std::unique_ptr<StackHelper> helper = std::make_unique<StackHelper>(io);
  std::vector<Result<std::string>> answers;
};

TEST_F(StackHelperTest, WhomADyingToolHoldsGoesOn) {
  for (int i = 0; i < 10; ++i) {
    Start();
    ASSERT_TRUE(Until("ttttt")) << States();
    helper->Stop();
    RunOut();
    ASSERT_EQ(States(), "SSSSS") << "round " << i;
  }
}

TEST_F(StackHelperTest, AlsoWhenTheAgentEnds) {
  for (int i = 0; i < 5; ++i) {
    Start();
    ASSERT_TRUE(Until("ttttt")) << States();
    helper.reset();
    ASSERT_EQ(States(), "SSSSS") << "round " << i;
    helper = std::make_unique<StackHelper>(io);
  }
}

TEST_F(StackHelperTest, AlsoWhenTheHelperDiesByItself) {
  Start();
  ASSERT_TRUE(Until("ttttt")) << States();
  StackOrder us;
  us.targets.push_back({.process = {::getpid(), ReadStat(::getpid())->start_ticks}, .rank = 0});
  for (const StackProcess& one : FindStackProcesses(us).processes) {
    if (one.command == "aimaster-agent") ::kill(one.process.pid, SIGKILL);
  }
  RunOut();
  EXPECT_EQ(States(), "SSSSS");
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_FALSE(answers[0]);
}

// The helper goes on, and kills the tools itself.
TEST_F(StackHelperTest, AlsoWhenToolsDoNotEndInTime) {
  for (int i = 0; i < 5; ++i) {
    order.timeout = 300ms;
    Start();
    RunOut();
    ASSERT_EQ(States(), "SSSSS") << "round " << i;
  }
  ASSERT_EQ(answers.size(), 5u);
  EXPECT_TRUE(answers[0]);
}

TEST_F(StackHelperTest, WhoWasStoppedBeforeStaysSo) {
  ::kill(order.targets[2].process.pid, SIGSTOP);
  ASSERT_TRUE(Until("SSTSS"));
  Start();
  ASSERT_TRUE(Until("ttttt")) << States();
  helper->Stop();
  RunOut();
  EXPECT_EQ(States(), "SSTSS");
}

TEST_F(StackHelperTest, TheNextCaptureBeginsWhenNobodyIsHeld) {
  Start();
  ASSERT_TRUE(Until("ttttt")) << States();
  Install("exit 1");
  order.capture = 2;
  Start();
  EXPECT_TRUE(helper->IsTaking(2));
  EXPECT_FALSE(helper->IsTaking(1));
  RunOut();
  EXPECT_EQ(States(), "SSSSS");
  ASSERT_EQ(answers.size(), 1u) << "of the second alone";
  EXPECT_TRUE(answers[0]);
  EXPECT_FALSE(helper->IsTaking(2));
}

}  // namespace
}  // namespace aimaster::agent

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--hold") {
    if (::ptrace(PTRACE_ATTACH, std::atoi(argv[2]), nullptr, nullptr) != 0) return 1;
    for (;;) ::pause();
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
