#include "shim/rank.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/execute.h"
#include "shim/files.h"
#include "shim/process.h"

enum { kForkRetryMs = 50 };
static const int64_t kForkPatienceNs = INT64_C(3000000000);

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
  // Where Yama restricts ptrace to descendants, tools of the same user may look into a rank all the same
  // (docs/decisions/stacks.md); elsewhere this fails, and is not needed.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  RestoreOomScore(oom_score);
  if (!OpenOutput(launch->log_dir, AIMASTER_FILE_OUT_FORMAT, spec->local, STDOUT_FILENO) ||
      !OpenOutput(launch->log_dir, AIMASTER_FILE_ERR_FORMAT, spec->local, STDERR_FILENO)) {
    Fail(failures, index, kStepOutput, errno);
  }
  if (chdir(spec->cwd) != 0) Fail(failures, index, kStepDirectory, errno);
  ResetSignals();
  Fail(failures, index, kStepExec, Execute(spec->argv, spec->envp));
}

// What is used up now may not be in a moment: peers of an earlier round are still dying, say. All ranks of this shim
// share the patience, since who waits for the second rank waits for the first one too.
static pid_t Fork(void) {
  static int64_t give_up_ns;
  for (;;) {
    const pid_t pid = fork();
    if (pid >= 0 || (errno != EAGAIN && errno != ENOMEM)) return pid;
    const int saved = errno;
    const int64_t now = NowNs();
    if (give_up_ns == 0) give_up_ns = now + kForkPatienceNs;
    if (now >= give_up_ns) {
      errno = saved;
      return -1;
    }
    poll(NULL, 0, kForkRetryMs);
  }
}

void StartRank(struct Rank* rank, uint32_t index, const struct Launch* launch, int failures, int oom_score) {
  const pid_t shim = getpid();
  rank->rank = launch->ranks[index].rank;
  rank->local = launch->ranks[index].local;
  const pid_t pid = Fork();
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

// Where the program lies that exec did not find although it is there. False when it is nowhere.
static bool FindProgram(const struct LaunchRank* launch, char* path, size_t capacity) {
  const char* name = launch->argv[0];
  if (*name == '/') {
    snprintf(path, capacity, "%s", name);
    return access(path, F_OK) == 0;
  }
  if (strchr(name, '/')) {
    snprintf(path, capacity, "%s/%s", launch->cwd, name);
    return access(path, F_OK) == 0;
  }
  for (const char* at = PathOf(launch->envp); *at;) {
    const size_t length = strcspn(at, ":");
    const bool is_absolute = length > 0 && *at == '/';
    if (is_absolute) snprintf(path, capacity, "%.*s/%s", (int)length, at, name);
    if (is_absolute && access(path, F_OK) == 0) return true;
    at += length + (at[length] == ':');
  }
  return false;
}

// exec says "no such file" of a program that is there when what it needs to run is not.
static void PrintMissingInterpreter(struct Text* what, const char* name, const char* path) {
  char line[256];
  if (ReadSmallFile(path, line, sizeof line) && strncmp(line, "#!", 2) == 0) {
    const char* interpreter = line + 2 + strspn(line + 2, " \t");
    Print(what, "cannot run %.600s: its interpreter %.*s does not exist", name, (int)strcspn(interpreter, " \t\r\n"),
          interpreter);
  } else {
    Print(what, "cannot run %.800s: its loader does not exist (was it built for another system?)", name);
  }
}

static void PrintStartFailure(struct Text* text, const struct Rank* rank, const struct LaunchRank* launch,
                              const char* log_dir) {
  char path[kLaunchMaxPathBytes + 1];
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
      if (rank->failed_errno == ENOENT && FindProgram(launch, path, sizeof path)) {
        PrintMissingInterpreter(&what, launch->argv[0], path);
      } else if (rank->failed_errno == ENOENT && !strchr(launch->argv[0], '/')) {
        Print(&what, "cannot run %.800s: no such command in PATH", launch->argv[0]);
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
  if (rank->orphaned_ms != 0) Print(text, ",\"orphaned_ms\":%lld", (long long)rank->orphaned_ms);
  PrintStartFailure(text, rank, launch, log_dir);
  Print(text, "}");
}

void ExitFileName(const struct Rank* rank, char* name, size_t capacity) {
  snprintf(name, capacity, AIMASTER_FILE_EXIT_FORMAT, rank->local);
}
