#include "shim/rank.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/execute.h"
#include "shim/files.h"
#include "shim/process.h"

static _Noreturn void Fail(int failures, uint32_t index, enum StartStep step, int error) {
  const struct StartFailure failure = {index, step, error};
  // Shorter than PIPE_BUF: whole or not at all; and the pipe holds more of them than there may be ranks.
  (void)!write(failures, &failure, sizeof failure);
  _exit(step == kStepExec ? ExecuteExitCode(error) : 126);
}

static bool OpenOutput(const char* log_dir, const char* format, uint32_t local, int target) {
  char path[kLaunchMaxPathBytes + 32];
  const int length = snprintf(path, sizeof path, "%s/", log_dir);
  snprintf(path + length, sizeof path - (size_t)length, format, local);
  const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY | O_CLOEXEC, 0600);
  return fd >= 0 && dup2(fd, target) == target;
}

static _Noreturn void BecomeRank(uint32_t index, const struct Launch* launch, int failures, int oom_score, pid_t shim) {
  const struct LaunchRank* spec = &launch->ranks[index];
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != shim) _exit(126);  // the shim died before the line above
  setpgid(0, 0);
  // Where Yama restricts ptrace, stack tools are children of the shim; elsewhere this fails, and is not needed.
  prctl(PR_SET_PTRACER, (unsigned long)shim, 0, 0, 0);
  RestoreOomScore(oom_score);
  if (!OpenOutput(launch->log_dir, AIMASTER_FILE_OUT_FORMAT, spec->local, STDOUT_FILENO) ||
      !OpenOutput(launch->log_dir, AIMASTER_FILE_ERR_FORMAT, spec->local, STDERR_FILENO)) {
    Fail(failures, index, kStepOutput, errno);
  }
  if (chdir(spec->cwd) != 0) Fail(failures, index, kStepDirectory, errno);
  ResetSignals();
  Fail(failures, index, kStepExec, Execute(spec->argv, spec->envp));
}

void StartRank(struct Rank* rank, uint32_t index, const struct Launch* launch, int failures, int oom_score) {
  const pid_t shim = getpid();
  rank->rank = launch->ranks[index].rank;
  rank->local = launch->ranks[index].local;
  const pid_t pid = fork();
  if (pid == 0) BecomeRank(index, launch, failures, oom_score, shim);
  if (pid < 0) {
    static const struct rusage kNoUsage;
    rank->failed_step = kStepFork;
    rank->failed_errno = errno;
    NoteEnd(rank, 126 << 8, &kNoUsage);
    return;
  }
  setpgid(pid, pid);  // also here, so that it holds whichever of us runs first
  struct ProcessStat stat;
  rank->pid = pid;
  rank->start_ticks = ReadProcessStat(pid, &stat) ? stat.start_ticks : 0;
  rank->state = kRankLive;
}

void NoteEnd(struct Rank* rank, int wait_status, const struct rusage* usage) {
  rank->ended_at_ns = WallTimeNs();
  rank->ended_monotonic_ns = NowNs();
  rank->wait_status = wait_status;
  rank->usage = *usage;
  rank->state = kRankEnded;
}

static void PrintStartFailure(struct Text* text, const struct Rank* rank, const struct LaunchRank* launch,
                              const char* log_dir) {
  char bytes[1024];
  struct Text what = TEXT_OVER(bytes);
  const char* reason = strerror(rank->failed_errno);
  switch (rank->failed_step) {
    case kStepNone:
      return;
    case kStepFork:
      Print(&what, "cannot create a process: %s", reason);
      break;
    case kStepOutput:
      Print(&what, "cannot open the rank's output files in %.800s: %s", log_dir, reason);
      break;
    case kStepDirectory:
      Print(&what, "cannot enter the working directory %.800s: %s", launch->cwd, reason);
      break;
    case kStepExec:
      if (rank->failed_errno == ENOENT && !strchr(launch->argv[0], '/')) {
        Print(&what, "cannot run %.800s: no such command in PATH", launch->argv[0]);
      } else if (rank->failed_errno == ENOENT && launch->argv[0][0] == '/' && access(launch->argv[0], F_OK) == 0) {
        Print(&what, "cannot run %.800s: its interpreter or loader does not exist", launch->argv[0]);
      } else if (rank->failed_errno == ENOEXEC) {
        Print(&what, "cannot run %.800s: %s (a script needs a first line with #!)", launch->argv[0], reason);
      } else {
        Print(&what, "cannot run %.800s: %s", launch->argv[0], reason);
      }
      break;
  }
  Print(text, ",\"exec_error\":");
  PrintJsonString(text, bytes, what.length);
  Print(text, ",\"exec_errno\":%d", rank->failed_errno);
}

static long long Milliseconds(struct timeval time) { return (long long)time.tv_sec * 1000 + time.tv_usec / 1000; }

void PrintExit(struct Text* text, const struct Rank* rank, const struct LaunchRank* launch, const char* log_dir) {
  const int status = rank->wait_status;
  Print(text, "{\"rank\":%u,\"local\":%u,\"pid\":", rank->rank, rank->local);
  Print(text, rank->pid ? "%d" : "null", (int)rank->pid);
  if (WIFSIGNALED(status)) {
    Print(text, ",\"code\":null,\"signal\":%d", WTERMSIG(status));
  } else {
    Print(text, ",\"code\":%d,\"signal\":null", WEXITSTATUS(status));
  }
  Print(text, ",\"core\":%s", WIFSIGNALED(status) && WCOREDUMP(status) ? "true" : "false");
  Print(text, ",\"time_ns\":%lld,\"monotonic_ns\":%lld", (long long)rank->ended_at_ns,
        (long long)rank->ended_monotonic_ns);
  Print(text, ",\"user_ms\":%lld,\"system_ms\":%lld,\"max_rss_kb\":%ld", Milliseconds(rank->usage.ru_utime),
        Milliseconds(rank->usage.ru_stime), rank->usage.ru_maxrss);
  Print(text, ",\"stopped_by_us\":%s", rank->stopped_by_us ? "true" : "false");
  PrintStartFailure(text, rank, launch, log_dir);
  Print(text, "}");
}

void ExitFileName(const struct Rank* rank, char* name, size_t capacity) {
  snprintf(name, capacity, AIMASTER_FILE_EXIT_FORMAT, rank->local);
}
