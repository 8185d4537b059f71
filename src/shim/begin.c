#include "shim/begin.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/durable.h"
#include "shim/files.h"
#include "shim/process.h"

static bool EndsWith(const char* text, const char* end) {
  const size_t length = strlen(text);
  const size_t end_length = strlen(end);
  return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

// An attempt is started once. Exit files say that it ended; started.json or reserved exit files without a lock say that
// a shim lived here and was killed, and then nobody knows what of it still runs.
static bool IsSpent(int directory) {
  bool spent = faccessat(directory, AIMASTER_FILE_TOMBSTONE, F_OK, 0) == 0 ||
               faccessat(directory, AIMASTER_FILE_ENDED, F_OK, 0) == 0 ||
               faccessat(directory, AIMASTER_FILE_STARTED, F_OK, 0) == 0;
  const int fd = spent ? -1 : openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* entries = fd >= 0 ? fdopendir(fd) : NULL;
  for (struct dirent* entry; !spent && entries && (entry = readdir(entries));) {
    spent = strncmp(entry->d_name, "rank", 4) == 0 &&
            (EndsWith(entry->d_name, ".exit.json") || EndsWith(entry->d_name, ".exit.tmp"));
  }
  if (entries) closedir(entries);
  return spent;
}

// fcntl, since such a lock is ours alone: a flock would live on in every rank.
static int TakeLock(int directory) {
  const int fd = openat(directory, AIMASTER_FILE_LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    Say("cannot create the lock file: %s", strerror(errno));
    return kShimExitCantCreate;
  }
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  if (fcntl(fd, F_SETLK, &lock) == 0) return 0;  // never closed: closing any descriptor of the file drops the lock
  if (errno == EACCES || errno == EAGAIN) return kShimExitLockHeld;
  Say("cannot lock the attempt's directory: %s", strerror(errno));
  return kShimExitSystem;
}

static int ReadLaunch(struct Attempt* attempt) {
  size_t size;
  attempt->launch_bytes = ReadFileAt(attempt->directory, AIMASTER_FILE_LAUNCH, kLaunchMaxBytes, &size);
  if (!attempt->launch_bytes) {
    Say("cannot read the launch file: %s", strerror(errno));
    return kShimExitNoLaunch;
  }
  const char* problem = ParseLaunch(attempt->launch_bytes, size, &attempt->launch);
  if (problem) {
    Say("the launch file is malformed: %s", problem);
    return kShimExitBadLaunch;
  }
  attempt->rank_count = attempt->launch.rank_count;
  attempt->stop_grace_ns = attempt->launch.stop_grace_ms * MILLISECONDS;
  for (uint32_t i = 0; i < attempt->rank_count; ++i) attempt->ranks[i].local = attempt->launch.ranks[i].local;
  return 0;
}

// With no room for the exit files nothing is started: a run whose end is lost is worse than a start that fails.
static int Reserve(struct Attempt* attempt) {
  char name[64];
  bool ok = ReserveFile(attempt->directory, AIMASTER_FILE_ENDED);
  for (uint32_t i = 0; ok && i < attempt->rank_count; ++i) {
    ExitFileName(&attempt->ranks[i], name, sizeof name);
    ok = ReserveFile(attempt->directory, name);
  }
  if (ok) return 0;
  Say("cannot reserve room for the exit files: %s; nothing was started", strerror(errno));
  UnreserveFile(attempt->directory, AIMASTER_FILE_ENDED);
  for (uint32_t i = 0; i < attempt->rank_count; ++i) {
    ExitFileName(&attempt->ranks[i], name, sizeof name);
    UnreserveFile(attempt->directory, name);
  }
  return kShimExitInputOutput;
}

static int Prepare(struct Attempt* attempt, const char* path) {
  const int signals[] = {SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2, SIGURG, SyncSignal()};
  EnsureStandardFds();
  CloseOtherFds();
  attempt->signals = CatchSignals(signals, sizeof signals / sizeof *signals);
  IgnoreSignals();
  attempt->directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (attempt->directory < 0) {
    Say("cannot open %s: %s", path, strerror(errno));
    return kShimExitNoLaunch;
  }
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (attempt->signals < 0 || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(nothing, STDOUT_FILENO) < 0 ||
      chdir("/") != 0) {
    Say("cannot prepare: %s", strerror(errno));
    return kShimExitSystem;
  }
  close(nothing);
  return 0;
}

static int Isolate(void) {
  if (!OwnSession()) {
    Say("cannot lead a session: %s", strerror(errno));
    return kShimExitSystem;
  }
  if (prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L) != 0 || !ProcIsOurs()) {
    Say("descendants could escape: no subreaper, or /proc does not show our own pid namespace; mount proc there");
    return kShimExitSystem;
  }
  return 0;
}

enum Begin BeginAttempt(struct Attempt* attempt, const char* path, int* code) {
  if ((*code = Prepare(attempt, path)) != 0 || (*code = TakeLock(attempt->directory)) != 0) return kBeginOver;
  // Whoever puts a tombstone looks at the lock afterwards; so one that came before our lock is seen here.
  if (IsSpent(attempt->directory)) return kBeginOver;
  if ((*code = ReadLaunch(attempt)) != 0 || (*code = Isolate()) != 0 || (*code = Reserve(attempt)) != 0)
    return kBeginOver;
  attempt->kept_exits = (int)syscall(SYS_memfd_create, AIMASTER_KEPT_EXITS, 1u /* close-on-exec */);
  OpenLease(&attempt->lease, &attempt->launch);
  return kBeginGo;
}
