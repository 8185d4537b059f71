#include "agent/stack_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "agent/stack_limits.h"
#include "core/argv.h"

namespace aimaster::agent {
namespace {

// Where there is no pidfd, and after a kill, how often is looked.
constexpr int kLookEveryMs = 20;

std::vector<std::string> CleanEnvironment() {
  // What the job set for its Python is not meant for ours; and a debug-info server that does not answer costs minutes.
  std::vector<std::string> environment = {"LANG=C.UTF-8", "NO_COLOR=1", "TERM=dumb", "DEBUGINFOD_URLS="};
  for (const char* name : {"PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH"}) {
    if (const char* value = std::getenv(name)) environment.push_back(std::string(name) + "=" + value);
  }
  return environment;
}

[[noreturn]] void Become(char* const* arguments, char* const* environment, int output, int error, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(126);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGPIPE, SIGINT, SIGHUP, SIGXFSZ, SIGCHLD, SIGTERM}) ::signal(signal, SIG_DFL);
  const int null = ::open("/dev/null", O_RDONLY);
  ::dup2(null, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(error, STDERR_FILENO);
  ::execve(arguments[0], arguments, environment);
  ::_exit(127);
}

}  // namespace

ToolRuns::~ToolRuns() {
  for (Run& run : runs_) {
    Kill(run);
    for (const int fd : {run.pidfd, run.output, run.error}) {
      if (fd >= 0) ::close(fd);
    }
  }
}

void ToolRuns::Start(size_t id, const std::vector<std::string>& arguments, RunClock::time_point deadline) {
  Run& run = runs_.emplace_back();
  run.result.id = id;
  run.deadline = deadline;
  std::vector<std::string> words = arguments, variables = CleanEnvironment();
  const std::vector<char*> argument_pointers = ArgvOf(words), variable_pointers = ArgvOf(variables);
  int output[2] = {-1, -1}, error[2] = {-1, -1};
  if (::pipe2(output, O_CLOEXEC) != 0 || ::pipe2(error, O_CLOEXEC) != 0) {
    for (const int fd : {output[0], output[1]}) {
      if (fd >= 0) ::close(fd);
    }
    run.result.error_output = "no pipe could be made";
    return;
  }
  const pid_t self = ::getpid();
  run.pid = ::fork();
  if (run.pid == 0) Become(argument_pointers.data(), variable_pointers.data(), output[1], error[1], self);
  ::close(output[1]);
  ::close(error[1]);
  if (run.pid < 0) {
    ::close(output[0]);
    ::close(error[0]);
    run.result.error_output = "no process could be created";
    return;
  }
  ::setpgid(run.pid, run.pid);
  run.output = output[0];
  run.error = error[0];
  run.pidfd = static_cast<int>(::syscall(SYS_pidfd_open, run.pid, 0));
  for (const int fd : {run.output, run.error}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
}

// False when the tool has printed more than it may; the rest is thrown away. One that prints faster than we read does
// not keep us here.
bool ToolRuns::Read(int& fd, std::string& into, size_t max) {
  char buffer[16 << 10];
  bool is_within = into.size() < max;
  for (size_t read = 0; fd >= 0 && read < kToolReadAtOnceBytes;) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return is_within;
    if (got <= 0) {
      ::close(fd);
      fd = -1;
      return is_within;
    }
    read += static_cast<size_t>(got);
    into.append(buffer, std::min(static_cast<size_t>(got), max - into.size()));
    is_within = is_within && into.size() < max;
  }
  return is_within;
}

void ToolRuns::Kill(Run& run) {
  if (run.pid <= 0 || run.is_killed) return;
  run.is_killed = true;
  ::kill(-run.pid, SIGKILL);
  ::kill(run.pid, SIGKILL);
}

ToolResult ToolRuns::Finish(std::list<Run>::iterator run) {
  for (const int fd : {run->pidfd, run->output, run->error}) {
    if (fd >= 0) ::close(fd);
  }
  ToolResult result = std::move(run->result);
  runs_.erase(run);
  return result;
}

ToolResult ToolRuns::Next() {
  for (;;) {
    std::vector<pollfd> events;
    int wait_ms = kLookEveryMs * 50;
    const auto now = RunClock::now();
    for (auto run = runs_.begin(); run != runs_.end(); ++run) {
      if (run->pid < 0) return Finish(run);
      Read(run->error, run->result.error_output, kToolErrorMaxBytes);
      const bool is_bounded = Read(run->output, run->result.output, kToolOutputMaxBytes);
      if (!run->is_killed && (!is_bounded || now >= run->deadline)) {
        run->result.timed_out = is_bounded;
        Kill(*run);
      }
      const pid_t reaped = ::waitpid(run->pid, &run->result.status, WNOHANG);
      if (reaped == run->pid || (reaped < 0 && errno == ECHILD)) {
        Read(run->error, run->result.error_output, kToolErrorMaxBytes);
        Read(run->output, run->result.output, kToolOutputMaxBytes);
        run->result.ran = !(WIFEXITED(run->result.status) && WEXITSTATUS(run->result.status) >= 126);
        run->pid = -1;
        return Finish(run);
      }
      // One that does not die of SIGKILL is in the kernel's hands, and may stay there.
      if (run->is_killed && now >= run->deadline + kHelperSlack / 2) {
        run->pid = -1;
        return Finish(run);
      }
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(run->deadline - now).count();
      if (run->is_killed || run->pidfd < 0) wait_ms = std::min(wait_ms, kLookEveryMs);
      wait_ms = std::min<int>(wait_ms, static_cast<int>(std::clamp<int64_t>(left, 1, 1000)));
      for (const int fd : {run->output, run->error, run->pidfd}) {
        if (fd >= 0) events.push_back({.fd = fd, .events = POLLIN, .revents = 0});
      }
    }
    ::poll(events.data(), events.size(), wait_ms);
  }
}

}  // namespace aimaster::agent
