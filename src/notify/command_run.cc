#include "notify/command_run.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "core/argv.h"
#include "core/quote.h"
#include "journal/files.h"

namespace aimaster::notify {
namespace {

using namespace std::chrono_literals;

constexpr int kReadsMax = 16;                  // of what it prints, in one look: as much as a pipe holds
constexpr std::chrono::seconds kDeathMost{1};  // after SIGKILL; a process that waits for a dead disk does not die

// The groups that run, one of each sink at most; 0: none. A handler of signals looks here.
std::array<std::atomic<pid_t>, kSinksMax> running_groups{};
static_assert(std::atomic<pid_t>::is_always_lock_free);

void Replace(pid_t group, pid_t by) {
  for (std::atomic<pid_t>& each : running_groups) {
    pid_t expected = group;
    if (each.compare_exchange_strong(expected, by)) return;
  }
}

// A file in memory: the command may read it or not, and nobody waits for that.
int MakeInput(const std::string& text) {
  const int input = memfd_create("aimaster-event", MFD_CLOEXEC);
  if (input < 0) return -1;
  WriteAll(input, text);  // memory that is short shortens it
  lseek(input, 0, SEEK_SET);
  return input;
}

std::vector<std::string> Environment(const CommandInput& input) {
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) environment.emplace_back(*variable);
  environment.insert(environment.end(), input.environment.begin(), input.environment.end());
  return environment;
}

// Between fork and exec; an errno, or it does not return.
int Become(char* const* argv, char* const* environment, const char* directory, int input, int output, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);     // a successor of ours may send the same again, but not beside it
  if (getppid() != parent) _exit(126);  // it died before that
  signal(SIGTERM, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  if (dup2(input, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0) return errno;
  if (chdir(directory) != 0 && chdir("/") != 0) return errno;
  execvpe(argv[0], argv, environment);
  return errno;
}

}  // namespace

void KillAllCommands() {
  for (const std::atomic<pid_t>& group : running_groups) {
    if (const pid_t pid = group.load(); pid > 0) kill(-pid, SIGKILL);
  }
}

CommandRun::CommandRun(const Sink& spec, const CommandInput& input)
    : deadline_(std::chrono::steady_clock::now() + spec.timeout), timeout_(spec.timeout), name_(spec.command.front()) {
  Start(spec, input);
}

void CommandRun::Start(const Sink& spec, const CommandInput& input) {
  std::vector<std::string> words = spec.command, environment = Environment(input);
  const std::vector<char*> argv = ArgvOf(words), variables = ArgvOf(environment);
  const std::string directory = spec.directory.empty() ? "/" : spec.directory;
  std::array<int, 2> output{-1, -1}, failure{-1, -1};
  const int standard_input = MakeInput(input.standard_input);
  if (standard_input < 0 || pipe2(output.data(), O_CLOEXEC) != 0 || pipe2(failure.data(), O_CLOEXEC) != 0) {
    trouble_ = std::string("no descriptors: ") + std::strerror(errno);
  } else {
    const pid_t self = getpid();
    pid_ = fork();
    if (pid_ == 0) {
      const int error = Become(argv.data(), variables.data(), directory.c_str(), standard_input, output[1], self);
      [[maybe_unused]] const ssize_t told = write(failure[1], &error, sizeof error);
      _exit(127);
    }
    if (pid_ < 0) trouble_ = std::string("cannot start a process: ") + std::strerror(errno);
    if (pid_ > 0) {
      setpgid(pid_, pid_);  // whoever of us two comes first
      Replace(0, pid_);
    }
  }
  for (const int descriptor : {standard_input, output[1], failure[1]}) {
    if (descriptor >= 0) close(descriptor);
  }
  output_ = output[0];
  failure_ = failure[0];
  for (const int descriptor : {output_, failure_}) {
    if (descriptor >= 0) fcntl(descriptor, F_SETFL, O_NONBLOCK);
  }
}

// One that does not die even so stays a child until we end.
CommandRun::~CommandRun() {
  KillGroup();
  int status = 0;
  if (pid_ > 0) Reap(status);
  for (const int descriptor : {output_, failure_}) {
    if (descriptor >= 0) close(descriptor);
  }
}

void CommandRun::KillGroup() {
  if (pid_ > 0) kill(-pid_, SIGKILL);
}

void CommandRun::Reap(int& status) {
  Replace(pid_, 0);  // before: then somebody else may have its number
  waitpid(std::exchange(pid_, -1), &status, WNOHANG);
}

void CommandRun::ReadFailure() {
  int error = 0;
  if (failure_ >= 0 && read(failure_, &error, sizeof error) == sizeof error) {
    trouble_ = Quoted(name_) + ": " + std::strerror(error);
  }
}

// What it prints is only shown when it fails; it may print without end.
void CommandRun::ReadOutput() {
  std::array<char, 4096> buffer{};
  for (int i = 0; i < kReadsMax && output_ >= 0; ++i) {
    const ssize_t got = read(output_, buffer.data(), buffer.size());
    if (got == 0 || (got < 0 && errno != EINTR)) return;
    if (got > 0) printed_.append(buffer.data(), static_cast<size_t>(got));
    if (printed_.size() > 2 * kAnswerShownBytes) printed_.erase(0, printed_.size() - kAnswerShownBytes);
  }
}

std::optional<Outcome> CommandRun::Look() {
  if (pid_ < 0) return NotDelivered(trouble_);
  const auto now = std::chrono::steady_clock::now();
  siginfo_t ended{};
  // Not reaped before its group is gone: until then nobody else can have its number.
  waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT);
  ReadFailure();
  ReadOutput();
  const std::string too_late = "not finished after " + FormatDuration(timeout_) + ": killed";
  if (ended.si_pid == 0) {
    if (now < deadline_) return std::nullopt;
    KillGroup();
    if (!killed_) killed_ = now;
    if (now - *killed_ < kDeathMost) return std::nullopt;
    return NotDelivered(too_late + ", and does not end");
  }
  KillGroup();
  int status = 0;
  Reap(status);
  if (killed_) return NotDelivered(too_late);
  if (!trouble_.empty()) return NotDelivered(trouble_);
  ReadOutput();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    return Outcome{.delivered = true, .refused = false, .retry_after = {}, .answer = "exit code 0"};
  }
  std::string answer = WIFEXITED(status) ? "exit code " + std::to_string(WEXITSTATUS(status))
                                         : "killed by signal " + std::to_string(WTERMSIG(status));
  while (!printed_.empty() && printed_.back() == '\n') printed_.pop_back();
  if (!printed_.empty()) answer += ": " + Readable(printed_, kAnswerShownBytes);
  return NotDelivered(answer);
}

}  // namespace aimaster::notify
