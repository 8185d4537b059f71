#include "shim/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/files.h"

// One number on every architecture; older C libraries lack the names.
enum { kSysPidfdSendSignal = 424, kSysPidfdOpen = 434, kSysCloseRange = 436 };
enum { kOomScore = -900 };

static int64_t ReadClock(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t NowNs(void) { return ReadClock(CLOCK_MONOTONIC); }
int64_t WallTimeNs(void) { return ReadClock(CLOCK_REALTIME); }

void EnsureStandardFds(void) {
  int fd;
  do {
    fd = open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) close(fd);
}

void CloseOtherFds(void) {
  if (syscall(kSysCloseRange, 3u, ~0u, 0u) == 0) return;
  DIR* directory = opendir("/proc/self/fd");
  if (!directory) return;
  const int own = dirfd(directory);
  for (struct dirent* entry; (entry = readdir(directory));) {
    const int fd = atoi(entry->d_name);
    if (fd > STDERR_FILENO && fd != own) close(fd);
  }
  closedir(directory);
}

bool OwnSession(void) {
  if (setsid() >= 0 || getsid(0) == getpid()) return true;
  // A leader of a process group can't leave its session, and a fork would lose the pid that our starter knows: so leave
  // the group first, into our parent's.
  return setpgid(0, getpgid(getppid())) == 0 && setsid() >= 0;
}

static bool WriteOomScore(int score) {
  const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool ok = dprintf(fd, "%d", score) > 0;
  close(fd);
  return ok;
}

int LowerOomScore(void) {
  char text[32];
  if (!ReadSmallFile("/proc/self/oom_score_adj", text, sizeof text)) return 0;
  const int before = atoi(text);
  if (before > kOomScore) WriteOomScore(kOomScore);
  return before;
}

void RestoreOomScore(int before) { WriteOomScore(before); }

int CatchSignals(const int* signals, int count) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  signal(SIGCHLD, SIG_DFL);
  for (int i = 0; i < count; ++i) {
    sigaddset(&set, signals[i]);
    signal(signals[i], SIG_DFL);
  }
  sigprocmask(SIG_SETMASK, &set, NULL);
  return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

void IgnoreSignals(void) {
  // XFSZ and XCPU: limits that are meant for the ranks are ours too, and a failed write is better than death.
  static const int kIgnored[] = {SIGHUP,  SIGPIPE, SIGINT,  SIGXFSZ, SIGXCPU,   SIGALRM,
                                 SIGTSTP, SIGTTIN, SIGTTOU, SIGPROF, SIGVTALRM, SIGPWR};
  for (size_t i = 0; i < sizeof kIgnored / sizeof *kIgnored; ++i) signal(kIgnored[i], SIG_IGN);
}

void ResetSignals(void) {
  for (int number = 1; number < _NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

bool ReadProcessStat(pid_t pid, struct ProcessStat* stat) {
  char path[32];
  char text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  if (!ReadSmallFile(path, text, sizeof text)) return false;
  // The command stands in parentheses and may itself hold any of them.
  char* open_parenthesis = strchr(text, '(');
  char* rest = strrchr(text, ')');
  if (!open_parenthesis || !rest || rest[1] != ' ') return false;
  *rest = '\0';
  snprintf(stat->command, sizeof stat->command, "%s", open_parenthesis + 1);
  stat->state = rest[2];
  char* field = rest + 3;  // in front of field 4, the parent
  long threads = 0;
  for (int number = 4; number <= 22; ++number) {
    char* next;
    const unsigned long long value = strtoull(field, &next, 10);
    if (next == field) return false;
    if (number == 4) stat->parent = (pid_t)value;
    if (number == 5) stat->group = (pid_t)value;
    if (number == 20) threads = (long)value;
    if (number == 22) stat->start_ticks = value;
    field = next;
  }
  stat->dead = (stat->state == 'Z' && threads <= 1) || stat->state == 'X' || stat->state == 'x';
  return true;
}

bool SignalProcess(pid_t pid, uint64_t start_ticks, int signal_number) {
  struct ProcessStat stat;
  const int pidfd = (int)syscall(kSysPidfdOpen, pid, 0);
  if (pidfd < 0 && errno == ESRCH) return false;
  bool ok = ReadProcessStat(pid, &stat) && stat.start_ticks == start_ticks;
  if (!ok) {
    errno = ESRCH;
  } else if (pidfd < 0 || (syscall(kSysPidfdSendSignal, pidfd, signal_number, NULL, 0) != 0 && errno != ESRCH)) {
    ok = kill(pid, signal_number) == 0;  // an old kernel, or a sandbox without pidfd
  }
  if (pidfd >= 0) {
    const int saved = errno;
    close(pidfd);
    errno = saved;
  }
  return ok;
}

bool ProcIsOurs(void) {
  char target[32];
  const ssize_t length = readlink("/proc/self", target, sizeof target - 1);
  if (length <= 0) return false;
  target[length] = '\0';
  return atoi(target) == (int)getpid();
}
