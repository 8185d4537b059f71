// Taking stacks of real processes with tools that misbehave: each is a script in a folder of the test.
#include "agent/stack_capture.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <functional>

#include "agent/stack_processes.h"
#include "agent/stack_run.h"
#include "agent/stack_tools.h"
#include "journal/temporary_directory.h"
#include "stacks/groups.h"

namespace aimaster::agent {
namespace {

using namespace std::chrono_literals;

// A process of the test, gone with it.
class Child {
 public:
  explicit Child(const std::function<void()>& body, const char* name = "trainer") {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::setpgid(0, 0);
      ::prctl(PR_SET_NAME, name);
      (void)!::write(ready[1], "x", 1);
      body();
      ::_exit(0);
    }
    char byte;
    (void)!::read(ready[0], &byte, 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Child() {
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  ProcessIdentity identity() const { return {pid_, ReadStat(pid_)->start_ticks}; }
  char state() const { return StateOf(identity()); }
  void AwaitState(char wanted) const {
    for (int i = 0; i < 5000 && state() != wanted; ++i) ::usleep(1000);
    EXPECT_EQ(state(), wanted);
  }

 private:
  pid_t pid_ = 0;
};

void Forever() {
  for (;;) ::pause();
}

class StackCaptureTest : public testing::Test {
 protected:
  // A tool by this name. "$pid" is the process that it is asked for.
  void Install(const std::string& name, const std::string& script) {
    const std::string path = folder.path() / name;
    std::ofstream(path) << "#!/bin/sh\nfor pid; do case $pid in [0-9]*) break;; esac; done\n" << script << "\n";
    ::chmod(path.c_str(), 0755);
  }
  // What py-spy prints of one thread in this function.
  static std::string PySpyAt(const std::string& function) {
    return R"(echo '[{"pid":'$pid',"os_thread_id":'$pid',"thread_name":"MainThread","active":true,"frames":[)"
           R"({"name":")" +
           function + R"(","filename":"train.py","module":null,"line":7}]}]')";
  }
  static std::string EuStackAt(const std::string& function) {
    return "echo \"PID $pid - process\nTID $pid:\n#0  0x0000000000000001 " + function + " - /home/me/trainer\"";
  }
  StackOrder OrderFor(const Child& child) {
    StackOrder order{.capture = 1, .timeout = 5000ms, .node = "n", .tool_path = {folder.path().string()}};
    order.targets.push_back(
        {.process = child.identity(), .rank = 3, .instance = "w-3", .error_output = folder.path() / "rank0.err"});
    return order;
  }
  static std::string TroubleOf(const stacks::Capture& capture) { return capture.Text(capture.processes.at(0).trouble); }
  static std::string ToolOf(const stacks::Capture& capture) { return capture.Text(capture.processes.at(0).tool); }
  static stacks::Frame InnermostOf(const stacks::Capture& capture) {
    if (capture.threads.empty()) return {};
    return stacks::FramesOf(capture, capture.threads[0].stack).back();
  }

  TemporaryDirectory folder;
};

TEST_F(StackCaptureTest, ATrainingInPythonIsReadByPySpy) {
  Install("py-spy", PySpyAt("load"));
  Install("eu-stack", EuStackAt("wrong"));
  const Child child(Forever, "python3");
  const stacks::Capture capture = CaptureStacks(OrderFor(child));
  EXPECT_EQ(InnermostOf(capture), (stacks::Frame{.function = "load", .file = "train.py", .line = 7}));
  EXPECT_EQ(ToolOf(capture), "py-spy");
  const stacks::ProcessRow& process = capture.processes.at(0);
  EXPECT_EQ(process.rank, 3u);
  EXPECT_EQ(process.pid, static_cast<uint32_t>(child.pid()));
  EXPECT_EQ(capture.Text(process.node), "n");
  EXPECT_TRUE(capture.threads.at(0).is_main);
}

TEST_F(StackCaptureTest, AProgramInCIsReadByEuStack) {
  Install("py-spy", PySpyAt("wrong"));
  Install("eu-stack", EuStackAt("barrier"));
  const Child child(Forever);
  EXPECT_EQ(InnermostOf(CaptureStacks(OrderFor(child))).function, "barrier");
}

TEST_F(StackCaptureTest, WhereTheBestToolFailsTheNextOneIsTried) {
  Install("py-spy", "echo 'Failed to find python version' >&2; exit 1");
  Install("pystack",
          "echo 'Traceback for thread '$pid' (x) [] (most recent call last):'\n"
          "echo '    (Python) File \"train.py\", line 9, in load'");
  const Child child(Forever, "python3");
  const stacks::Capture capture = CaptureStacks(OrderFor(child));
  EXPECT_EQ(ToolOf(capture), "pystack");
  EXPECT_EQ(InnermostOf(capture).line, 9u);
}

TEST_F(StackCaptureTest, AToolThatIsKilledInMidAttachLeavesNobodyStopped) {
  Install("py-spy", "kill -STOP $pid; exec sleep 1000");
  const Child child(Forever, "python3");
  StackOrder order = OrderFor(child);
  order.timeout = 300ms;
  const stacks::Capture capture = CaptureStacks(order);
  EXPECT_NE(TroubleOf(capture).find("did not answer in time"), std::string::npos) << TroubleOf(capture);
  child.AwaitState('S');
}

TEST_F(StackCaptureTest, AToolThatEndsAndLeavesItsTargetStoppedDoesNoHarmEither) {
  Install("py-spy", "kill -STOP $pid; " + PySpyAt("load"));
  const Child child(Forever, "python3");
  CaptureStacks(OrderFor(child));
  child.AwaitState('S');
}

TEST_F(StackCaptureTest, WhoWasStoppedBeforeIsReadAndStaysStopped) {
  Install("py-spy", "kill -CONT $pid; " + PySpyAt("load"));
  const Child child(Forever, "python3");
  ::kill(child.pid(), SIGSTOP);
  child.AwaitState('T');
  const stacks::Capture capture = CaptureStacks(OrderFor(child));
  child.AwaitState('T');
  EXPECT_EQ(InnermostOf(capture).language, stacks::Language::kKernel);
  EXPECT_NE(InnermostOf(capture).function.find("stopped by a signal"), std::string::npos);
  EXPECT_EQ(stacks::FramesOf(capture, capture.threads.at(0).stack).front().function, "load");
}

TEST_F(StackCaptureTest, WhoIsStuckInTheKernelIsToldFromProcAndNobodyAttaches) {
  Install("eu-stack", "touch " + (folder.path() / "attached").string() + "; " + EuStackAt("x"));
  // Who has called vfork sleeps uninterruptibly until the child is another program.
  const Child child([] {
    if (::vfork() == 0) Forever();
  });
  child.AwaitState('D');
  StackOrder order = OrderFor(child);
  const stacks::Capture capture = CaptureStacks(order);
  EXPECT_NE(InnermostOf(capture).function.find("uninterruptible sleep"), std::string::npos);
  EXPECT_EQ(ToolOf(capture), "/proc");
  const stacks::Grouping grouping = stacks::GroupStacks(capture);
  EXPECT_EQ(grouping.groups.at(0).waits, stacks::Waits::kKernel);
  EXPECT_EQ(child.state(), 'D');
}

TEST_F(StackCaptureTest, WhatTheKernelRefusesIsToldWithWhatToAllow) {
  Install("py-spy",
          "echo 'Error: Permission Denied: Try running again with elevated permissions' >&2\n"
          "echo 'Reason: Operation not permitted (os error 1)' >&2; exit 1");
  Install("eu-stack", "touch " + (folder.path() / "tried").string());
  const Child child(Forever, "python3");
  const std::string trouble = TroubleOf(CaptureStacks(OrderFor(child)));
  EXPECT_NE(trouble.find("PTRACE"), std::string::npos) << trouble;
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "tried")) << "it would be refused too";
}

// A program that writes its stacks when it gets SIGUSR2, as Python does with faulthandler.register.
std::string WriterTo(const std::string& output) {
  return "trap 'printf \"Current thread 0x01 (most recent call first):\\n  File \\\"train.py\\\", line 7 in load\\n\" "
         ">> " +
         output + "' USR2; while :; do sleep 0.01; done";
}

TEST_F(StackCaptureTest, WhereToolsAreRefusedFaulthandlerIsAsked) {
  const std::string output = folder.path() / "rank0.err";
  std::ofstream(output) << "step 12\n";
  Install("eu-stack", "echo 'Operation not permitted' >&2; exit 1");
  const std::string script = WriterTo(output);
  const Child child([&] {
    ::execle("/bin/sh", "sh", "-c", script.c_str(), nullptr,
             std::array<const char*, 2>{"AIMASTER_STACK_SIGNAL=SIGUSR2", nullptr}.data());
  });
  for (int i = 0; i < 5000 && !Catches(child.pid(), SIGUSR2); ++i) ::usleep(1000);
  const stacks::Capture capture = CaptureStacks(OrderFor(child));
  EXPECT_EQ(ToolOf(capture), "faulthandler");
  EXPECT_EQ(InnermostOf(capture), (stacks::Frame{.function = "load", .file = "train.py", .line = 7}));
  EXPECT_NE(TroubleOf(capture).find("PTRACE"), std::string::npos) << "why native frames are missing";
}

TEST_F(StackCaptureTest, NoSignalIsSentToWhoDidNotAskForIt) {
  const std::string output = folder.path() / "rank0.err";
  std::ofstream(output) << "step 12\n";
  Install("eu-stack", "echo 'Operation not permitted' >&2; exit 1");
  const std::string script = WriterTo(output);
  const Child child([&] { ::execl("/bin/sh", "sh", "-c", script.c_str(), nullptr); });
  for (int i = 0; i < 5000 && !Catches(child.pid(), SIGUSR2); ++i) ::usleep(1000);
  CaptureStacks(OrderFor(child));
  EXPECT_EQ(std::filesystem::file_size(output), 8u) << "a handler alone may be for anything";
}

TEST_F(StackCaptureTest, ASignalWithoutAHandlerWouldKillAndIsNotSent) {
  std::ofstream(folder.path() / "rank0.err") << "";
  Install("eu-stack", "echo 'Operation not permitted' >&2; exit 1");
  const Child child([] {
    ::execle("/bin/sleep", "sleep", "1000", nullptr,
             std::array<const char*, 2>{"AIMASTER_STACK_SIGNAL=10", nullptr}.data());
  });
  child.AwaitState('S');
  const std::string trouble = TroubleOf(CaptureStacks(OrderFor(child)));
  EXPECT_NE(trouble.find("it has no handler"), std::string::npos) << trouble;
  EXPECT_EQ(child.state(), 'S');
}

TEST_F(StackCaptureTest, WithoutToolsTheReasonSaysWhatToInstall) {
  const Child python(Forever, "python3"), program(Forever);
  EXPECT_NE(TroubleOf(CaptureStacks(OrderFor(python))).find("pip install py-spy"), std::string::npos);
  EXPECT_NE(TroubleOf(CaptureStacks(OrderFor(program))).find("apt install elfutils"), std::string::npos);
  StackOrder none = OrderFor(program);
  none.tool = StackTool::kNone;
  EXPECT_EQ(TroubleOf(CaptureStacks(none)), "--stack-tool is none");
}

TEST_F(StackCaptureTest, WhatARankHasStartedIsItsToo) {
  Install("py-spy", PySpyAt("load"));
  const Child rank(
      [] {
        if (::fork() == 0) Forever();
        Forever();
      },
      "python3");
  const StackOrder order = OrderFor(rank);
  stacks::Capture capture;
  for (int i = 0; i < 500 && capture.processes.size() < 2; ++i) capture = CaptureStacks(order);
  ASSERT_EQ(capture.processes.size(), 2u);
  EXPECT_FALSE(capture.processes[0].is_child);
  EXPECT_TRUE(capture.processes[1].is_child);
  EXPECT_EQ(capture.processes[1].rank, 3u);
}

TEST_F(StackCaptureTest, ARankThatHasEndedIsNamed) {
  StackOrder order;
  {
    const Child child(Forever);
    order = OrderFor(child);
  }
  const stacks::Capture capture = CaptureStacks(order);
  EXPECT_EQ(TroubleOf(capture), "its process had ended");
  EXPECT_TRUE(capture.threads.empty());
}

TEST_F(StackCaptureTest, ManyAreReadAtATimeAndNoneWaitsForAHangingOne) {
  Install("py-spy",
          "if [ -e " + (folder.path() / "hang").string() + ".$pid ]; then exec sleep 1000; fi; " + PySpyAt("load"));
  std::vector<std::unique_ptr<Child>> children;
  StackOrder order;
  for (uint32_t rank = 0; rank < 12; ++rank) {
    children.push_back(std::make_unique<Child>(Forever, "python3"));
    if (rank == 0) order = OrderFor(*children[0]);
    if (rank > 0) order.targets.push_back({.process = children.back()->identity(), .rank = rank, .instance = "w"});
  }
  order.targets[0].rank = 0;
  std::ofstream(folder.path() / ("hang." + std::to_string(children[0]->pid()))) << "";
  order.timeout = 3000ms;
  const stacks::Grouping grouping = stacks::GroupStacks(CaptureStacks(order));
  EXPECT_EQ(grouping.answered.Text(), "1-11");
}

TEST(ToolRunsTest, AToolThatPrintsWithoutEndIsEnded) {
  ToolRuns runs;
  runs.Start(7,
             {"/bin/sh", "-c", "while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done"},
             RunClock::now() + 60s);
  const ToolResult result = runs.Next();
  EXPECT_EQ(result.id, 7u);
  EXPECT_GT(result.output.size(), size_t{1} << 20);
  EXPECT_TRUE(WIFSIGNALED(result.status));
  EXPECT_FALSE(result.timed_out);
}

// cat is as quick as we are, so there is always more to read.
TEST(ToolRunsTest, NorIsOneWaitedForThatPrintsFasterThanIsRead) {
  for (const char* script : {"cat /dev/zero", "cat /dev/zero >&2"}) {
    ToolRuns runs;
    runs.Start(7, {"/bin/sh", "-c", std::string(script) + " & cat /dev/zero >&2 & exec " + script},
               RunClock::now() + 1s);
    const auto began = RunClock::now();
    EXPECT_TRUE(WIFSIGNALED(runs.Next().status));
    EXPECT_LT(RunClock::now() - began, 20s) << script;
  }
}

TEST(ToolRunsTest, WhatDoesNotExistDidNotRun) {
  ToolRuns runs;
  runs.Start(1, {"/nowhere/py-spy"}, RunClock::now() + 60s);
  EXPECT_FALSE(runs.Next().ran);
}

TEST(StackToolsTest, SignalsAreThoseThatAProgramMayHandle) {
  EXPECT_EQ(SignalNumber("SIGUSR1"), SIGUSR1);
  EXPECT_EQ(SignalNumber("USR2"), SIGUSR2);
  EXPECT_EQ(SignalNumber("10"), SIGUSR1);
  EXPECT_EQ(SignalNumber("SIGKILL"), std::nullopt);
  EXPECT_EQ(SignalNumber("9"), std::nullopt);
  EXPECT_EQ(SignalNumber(""), std::nullopt);
}

TEST(StackOrderTest, WhatIsWrittenIsReadAgain) {
  StackOrder order{
      .capture = 4, .tool = StackTool::kPystack, .timeout = 1500ms, .node = "n", .tool_path = {"/usr/bin"}};
  order.targets.push_back({.process = {12, 34}, .rank = 5, .instance = "w", .error_output = "/x/rank0.err"});
  const Result<StackOrder> again = ParseStackOrder(FormatStackOrder(order));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, order);
  EXPECT_FALSE(ParseStackOrder("{}"));
  EXPECT_FALSE(ParseStackOrder(""));
}

}  // namespace
}  // namespace aimaster::agent
