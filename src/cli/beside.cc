#include "cli/beside.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>

#include "cli/command_lookup.h"
#include "core/argv.h"

namespace aimaster::cli {
namespace {

constexpr std::array kForwarded = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2};
constexpr std::chrono::seconds kGrace{2};  // from SIGTERM to SIGKILL, once its companion has ended

// In the child. What went wrong goes through the pipe, which a successful execve closes.
[[noreturn]] void Become(const BesideCommand& beside, const sigset_t& mask, pid_t parent, int trouble) {
  std::vector<std::string> command = beside.command, environment;
  for (const auto& [name, value] : beside.environment) environment.push_back(name + "=" + value);
  const std::vector<char*> argv = ArgvOf(command), envp = ArgvOf(environment);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::signal(SIGPIPE, SIG_DFL);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  errno = 0;
  if (::chdir(beside.working_directory.c_str()) == 0) {
    const auto path = beside.environment.find("PATH");
    ::setenv("PATH", path == beside.environment.end() ? "/usr/local/bin:/usr/bin:/bin" : path->second.c_str(), 1);
    ::execvpe(argv[0], argv.data(), envp.data());
  }
  const int error = errno;
  const ssize_t ignored = ::write(trouble, &error, sizeof error);
  static_cast<void>(ignored);
  ::_exit(error == ENOENT ? kExitNotFound : kExitNotExecutable);
}

class BesideRun {
 public:
  BesideRun(pid_t child, int companion, int signals) : child_(child), companion_(companion), signals_(signals) {}

  BesideEnd ToEnd() {
    while (!Reap()) Wait();
    EndDescendants();
    return end_;
  }

 private:
  // True when the command itself has ended.
  bool Reap() {
    int status = 0;
    for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      if (pid != child_) continue;
      end_.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      return true;
    }
    return false;
  }

  void Wait() {
    std::array<pollfd, 2> ready{pollfd{.fd = signals_, .events = POLLIN, .revents = 0},
                                pollfd{.fd = end_.with_companion ? -1 : companion_, .events = POLLIN, .revents = 0}};
    const auto left =
        kill_at_ ? std::chrono::duration_cast<std::chrono::milliseconds>(*kill_at_ - Clock::now()).count() : -1;
    ::poll(ready.data(), ready.size(), kill_at_ ? static_cast<int>(std::max<int64_t>(0, left)) : -1);
    if (ready[0].revents != 0) TakeSignals();
    if (ready[1].revents != 0) {
      end_.with_companion = true;
      ::kill(child_, SIGTERM);
      ::kill(child_, SIGCONT);
      kill_at_ = Clock::now() + kGrace;
    }
    if (kill_at_ && Clock::now() >= *kill_at_) {
      ::kill(child_, SIGKILL);
      kill_at_.reset();
    }
  }

  void TakeSignals() {
    signalfd_siginfo info{};
    while (::read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      // What the terminal sends, the kernel sends to the whole group; SIGCHLD is for us.
      const bool is_ours = info.ssi_signo == SIGCHLD || info.ssi_code == SI_KERNEL;
      if (!is_ours) ::kill(child_, static_cast<int>(info.ssi_signo));
    }
  }

  // We are the subreaper: whatever of it is still there is, or becomes, our child.
  void EndDescendants() {
    while (true) {
      std::ifstream file("/proc/self/task/" + std::to_string(::getpid()) + "/children");
      for (pid_t pid = 0; file >> pid;) ::kill(pid, SIGKILL);
      if (::waitpid(-1, nullptr, 0) < 0 && errno == ECHILD) return;
    }
  }

  using Clock = std::chrono::steady_clock;
  const pid_t child_;
  const int companion_, signals_;
  std::optional<Clock::time_point> kill_at_;
  BesideEnd end_;
};

}  // namespace

BesideEnd RunBeside(const BesideCommand& command) {
  const int companion = agent::OpenPidfd(command.companion);
  if (companion < 0) return {.exit_code = 1, .trouble = "it has just ended"};
  sigset_t taken, before;
  sigemptyset(&taken);
  sigaddset(&taken, SIGCHLD);
  for (const int signal : kForwarded) sigaddset(&taken, signal);
  ::pthread_sigmask(SIG_BLOCK, &taken, &before);
  for (const int signal : kForwarded) sigdelset(&before, signal);
  const int signals = ::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
  int trouble[2] = {-1, -1};
  ::prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L);
  if (signals < 0 || ::pipe2(trouble, O_CLOEXEC) != 0) return {.exit_code = 1, .trouble = std::strerror(errno)};
  const pid_t self = ::getpid(), child = ::fork();
  if (child < 0) return {.exit_code = 1, .trouble = std::string("cannot start a process: ") + std::strerror(errno)};
  if (child == 0) Become(command, before, self, trouble[1]);
  ::close(trouble[1]);
  int error = 0;
  const bool failed = ::read(trouble[0], &error, sizeof error) == static_cast<ssize_t>(sizeof error);
  ::close(trouble[0]);
  BesideEnd end = BesideRun(child, companion, signals).ToEnd();
  if (failed) end.trouble = "cannot execute " + command.command.front() + ": " + std::strerror(error);
  return end;
}

}  // namespace aimaster::cli
