#include "shim/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/execute.h"
#include "shim/files.h"
#include "shim/launch_format.h"
#include "shim/process.h"

enum { kCrashLoopDeaths = 10, kFirstPermanentCode = 64, kLastPermanentCode = 78, kNotItsFaultCode = 79 };
static const int64_t kMillisecond = 1000000;
static const int64_t kCrashLoopSpanNs = 60 * INT64_C(1000000000);
static const int64_t kGoodLifeNs = 60 * INT64_C(1000000000);
static const int64_t kBackoffMs[] = {0, 100, 200, 500, 1000, 2000, 5000};

extern char** environ;

struct Supervisor {
  const char* name;
  char** command;
  int run_directory;  // -1: none
  int64_t backoff_max_ms;
  int signals;
  int oom_score;

  pid_t child;
  int exec_error;  // the reading end of a pipe that carries the errno of a failed exec
  unsigned starts;
  int stop_signal;  // the one that we were told to end by, or 0
  int64_t started_ns;
  int64_t deaths_ns[kCrashLoopDeaths];  // a ring
  unsigned deaths;
  unsigned backoff_step;
};

static const char* Usage(char** argv, struct Supervisor* self) {
  self->run_directory = -1;
  self->backoff_max_ms = kBackoffMs[sizeof kBackoffMs / sizeof *kBackoffMs - 1];
  for (; *argv && strcmp(*argv, "--") != 0; argv += 2) {
    if (!argv[1]) return "an option lacks its value";
    if (strcmp(*argv, "--name") == 0) {
      self->name = argv[1];
    } else if (strcmp(*argv, "--run-dir") == 0) {
      self->run_directory = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      if (self->run_directory < 0) return "the directory of --run-dir cannot be opened";
    } else if (strcmp(*argv, "--backoff-max-ms") == 0) {
      char* end;
      self->backoff_max_ms = strtol(argv[1], &end, 10);
      if (*end || !argv[1][0] || self->backoff_max_ms < 0) return "--backoff-max-ms takes a number of milliseconds";
    } else {
      return "unknown option";
    }
  }
  if (!*argv || !argv[1] || !argv[1][0]) return "a command has to follow --";
  self->command = argv + 1;
  if (!self->name) self->name = self->command[0];
  return NULL;
}

static void WriteSupervisor(const struct Supervisor* self) {
  char bytes[256];
  struct Text text = TEXT_OVER(bytes);
  struct ProcessStat stat;
  if (self->run_directory < 0) return;
  const bool known = ReadProcessStat(getpid(), &stat);
  Print(&text, "{\"pid\":%d,\"start_ticks\":%llu,\"child_pid\":%d,\"starts\":%u}\n", (int)getpid(),
        known ? (unsigned long long)stat.start_ticks : 0, (int)self->child, self->starts);
  if (!PutFile(self->run_directory, "supervisor.json", &text)) {
    Say("%s: cannot write supervisor.json: %s", self->name, strerror(errno));
  }
}

static _Noreturn void BecomeCommand(const struct Supervisor* self, int exec_error) {
  RestoreOomScore(self->oom_score);
  ResetSignals();
  const int32_t error = Execute(self->command, environ);
  (void)!write(exec_error, &error, sizeof error);
  _exit(ExecuteExitCode(error));
}

static bool StartChild(struct Supervisor* self) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
  const pid_t pid = fork();
  if (pid == 0) BecomeCommand(self, ends[1]);
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return false;
  }
  self->exec_error = ends[0];
  self->child = pid;
  self->started_ns = NowNs();
  ++self->starts;
  WriteSupervisor(self);
  return true;
}

static void HandleSignals(struct Supervisor* self) {
  struct signalfd_siginfo signal_info;
  while (read(self->signals, &signal_info, sizeof signal_info) == (ssize_t)sizeof signal_info) {
    const int number = (int)signal_info.ssi_signo;
    if (number == SIGCHLD) continue;
    if (number != SIGUSR1 && number != SIGUSR2) self->stop_signal = number;
    if (self->child > 0) kill(self->child, number);
  }
}

// Collects our child and orphans; true when the child ended.
static bool Reap(struct Supervisor* self, int* child_status) {
  bool ended = false;
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (pid != self->child) continue;
    ended = true;
    *child_status = status;
    self->child = 0;
  }
  return ended;
}

static void WaitForSignal(const struct Supervisor* self, int64_t until_ns) {
  struct pollfd event = {.fd = self->signals, .events = POLLIN};
  const int64_t rest = until_ns - NowNs();
  const struct timespec pause = {rest > 0 ? rest / 1000000000 : 0, rest > 0 ? rest % 1000000000 : 0};
  ppoll(&event, 1, until_ns == INT64_MAX ? NULL : &pause, NULL);
}

static int AwaitChild(struct Supervisor* self, int32_t* exec_error) {
  int status = 0;
  while (!Reap(self, &status)) {
    WaitForSignal(self, INT64_MAX);
    HandleSignals(self);
  }
  if (read(self->exec_error, exec_error, sizeof *exec_error) != (ssize_t)sizeof *exec_error) *exec_error = 0;
  close(self->exec_error);
  return status;
}

static int ExitCode(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

// Notes a death; true when there are too many of them.
static bool IsCrashLoop(struct Supervisor* self) {
  const int64_t now = NowNs();
  const int64_t oldest = self->deaths_ns[(self->deaths + 1) % kCrashLoopDeaths];
  self->deaths_ns[self->deaths++ % kCrashLoopDeaths] = now;
  return self->deaths >= kCrashLoopDeaths && now - oldest <= kCrashLoopSpanNs;
}

static void BackOff(struct Supervisor* self) {
  const unsigned last = sizeof kBackoffMs / sizeof *kBackoffMs - 1;
  const int64_t step = kBackoffMs[self->backoff_step];
  const int64_t pause = step < self->backoff_max_ms ? step : self->backoff_max_ms;
  if (self->backoff_step < last) ++self->backoff_step;
  const int64_t until = NowNs() + pause * kMillisecond;
  int unused;
  while (self->stop_signal == 0 && NowNs() < until) {
    WaitForSignal(self, until);
    HandleSignals(self);
    Reap(self, &unused);
  }
}

static bool IsPermanent(int status) {
  return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || (WEXITSTATUS(status) >= kFirstPermanentCode &&
                                                            WEXITSTATUS(status) <= kLastPermanentCode));
}

static int Supervise(struct Supervisor* self) {
  for (;;) {
    int32_t exec_error = 0;
    int status = 1 << 8;
    HandleSignals(self);
    if (self->stop_signal != 0) return 128 + self->stop_signal;
    const bool started = StartChild(self);
    if (started) {
      status = AwaitChild(self, &exec_error);
    } else {
      Say("%s: cannot create a process: %s", self->name, strerror(errno));
    }
    if (exec_error != 0) Say("%s: cannot run %s: %s", self->name, self->command[0], strerror(exec_error));
    if (self->stop_signal != 0 || IsPermanent(status) || (exec_error != 0 && self->starts == 1))
      return ExitCode(status);
    if (started) {
      const char* how = WIFSIGNALED(status) ? "signal" : "code";
      Say("%s: ended with %s %d, starting it again", self->name, how,
          WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
      if (NowNs() - self->started_ns >= kGoodLifeNs) self->backoff_step = 0;
    }
    const bool its_fault = started && !(WIFEXITED(status) && WEXITSTATUS(status) == kNotItsFaultCode);
    if (its_fault && IsCrashLoop(self)) {
      Say("%s: died %d times within 60 s; giving up", self->name, kCrashLoopDeaths);
      return kShimExitCrashLoop;
    }
    BackOff(self);
  }
}

int RunSupervisor(char** argv) {
  static struct Supervisor self;
  static const int kSignals[] = {SIGTERM, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2};
  EnsureStandardFds();
  const char* problem = Usage(argv, &self);
  if (problem) {
    Say("%s (aimaster-shim --supervise [--name N] [--run-dir DIR] [--backoff-max-ms N] -- CMD ARGS…)", problem);
    return kShimExitUsage;
  }
  IgnoreSignals();
  self.signals = CatchSignals(kSignals, sizeof kSignals / sizeof *kSignals);
  if (self.signals < 0) {
    Say("%s: cannot watch signals: %s", self.name, strerror(errno));
    return kShimExitSystem;
  }
  if (!OwnSession()) Say("%s: no session of its own: %s", self.name, strerror(errno));
  prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L);
  self.oom_score = LowerOomScore();
  return Supervise(&self);
}
