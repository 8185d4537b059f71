#include "shim/mpi_rank.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/execute.h"
#include "shim/files.h"
#include "shim/launch_format.h"
#include "shim/rank.h"

extern char** environ;

// What each library calls it, by the same order.
struct Names {
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};
static const struct Names kOpenMpi = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                                      "OMPI_COMM_WORLD_LOCAL_SIZE"};
static const struct Names kHydra = {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};

static bool IsOpenMpi(void) { return getenv(kOpenMpi.rank) != NULL; }

static void CopyVariable(const char* from, const char* to) {
  const char* value = getenv(from);
  if (value) setenv(to, value, 1);
}

// Returns the rank's number.
static uint32_t NumberRank(void) {
  const struct Names* names = IsOpenMpi() ? &kOpenMpi : &kHydra;
  CopyVariable(names->rank, "RANK");
  CopyVariable(names->size, "WORLD_SIZE");
  CopyVariable(names->local_rank, "LOCAL_RANK");
  CopyVariable(names->local_size, "LOCAL_WORLD_SIZE");
  const char* number = getenv(names->rank);
  const unsigned long rank = number ? strtoul(number, NULL, 10) : 0;
  return rank < kLaunchMaxNumber ? (uint32_t)rank : 0;
}

// A path with a space or a colon in it can't be said in LD_PRELOAD; then, and where the library is missing, nothing is
// recorded, which the master notices.
static void PreloadProbe(void) {
  if (!getenv(AIMASTER_C4D_DIR)) return;
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) return;
  path[length] = '\0';
  const char* name = IsOpenMpi() ? "libaimaster-pmpi-openmpi.so" : "libaimaster-pmpi-mpich.so";
  char* slash = strrchr(path, '/');
  if (!slash || (size_t)(slash + 1 - path) + strlen(name) >= sizeof path) return;
  strcpy(slash + 1, name);
  if (strpbrk(path, " :") || access(path, R_OK) != 0) return;
  const char* others = getenv("LD_PRELOAD");
  static char all[2 * PATH_MAX];
  const bool has_others = others && *others;
  const int size = snprintf(all, sizeof all, "%s%s%s", path, has_others ? ":" : "", has_others ? others : "");
  if (size > 0 && (size_t)size < sizeof all) setenv("LD_PRELOAD", all, 1);
}

static _Noreturn void BecomeRank(char** argv, const sigset_t* mask, bool child_was_ignored, int failure, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);  // as in rank.c
  if (getppid() != parent) _exit(126);                 // it was killed before the line above
  if (child_was_ignored) signal(SIGCHLD, SIG_IGN);
  PreloadProbe();
  sigprocmask(SIG_SETMASK, mask, NULL);
  const int32_t error = Execute(argv, environ);
  (void)!write(failure, &error, sizeof error);
  _exit(ExecuteExitCode(error));
}

// The daemons of MPI signal the group of a rank when they end it; what they only pass on, OpenMPI's sends to one
// process and MPICH's to the group. The rank is in our group, so it is told only what it can't have heard.
static bool IsForUsAlone(int number) {
  return IsOpenMpi() && number != SIGTERM && number != SIGINT && number != SIGHUP && number != SIGQUIT &&
         number != SIGPIPE && number != SIGCHLD;
}

static void AwaitEnd(struct Rank* rank, const sigset_t* caught) {
  for (;;) {
    siginfo_t signal_info;
    const int number = sigwaitinfo(caught, &signal_info);
    // Nobody ends this rank for a failure that he can only have heard of from us: so it was another one's.
    if (number == SIGTERM) rank->stopped_by_us = true;
    int status = 126 << 8;
    static struct rusage usage;
    const pid_t ended = wait4(rank->pid, &status, WNOHANG, &usage);
    if (ended == rank->pid || (ended < 0 && errno != EINTR)) {
      NoteEnd(rank, status, &usage);
      return;
    }
    if (number > 0 && IsForUsAlone(number)) kill(rank->pid, number);
  }
}

// -1: nobody wants to know.
static int OpenFolder(void) {
  const char* path = getenv(AIMASTER_MPI_DIR);
  return path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
}

// Hydra closes its end of the connection once it has heard the goodbye of MPI_Finalize. The copy of ours shows that.
static bool LeftWithoutGoodbye(void) {
  const char* number = getenv("PMI_FD");
  if (IsOpenMpi() || !number) return false;
  struct pollfd connection = {.fd = atoi(number), .events = 0};
  return poll(&connection, 1, 0) == 0;
}

struct Name {
  char text[64];
};

static struct Name NameOf(const struct Rank* rank, const char* suffix) {
  struct Name name;
  snprintf(name.text, sizeof name.text, "rank%u.%d%s", rank->rank, (int)rank->pid, suffix);
  return name;
}

static void Touch(int folder, const char* name) {
  const int file = openat(folder, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file >= 0) close(file);
}

static void WriteExit(int folder, const struct Rank* rank, char** argv) {
  char cwd[PATH_MAX];
  if (!getcwd(cwd, sizeof cwd)) strcpy(cwd, ".");
  const struct LaunchRank launch = {.rank = rank->rank, .cwd = cwd, .argv = argv, .envp = environ};
  char bytes[kShimExitFileBytes];
  struct Text text = TEXT_OVER(bytes);
  PrintExit(&text, rank, &launch, "");
  if (!PutFile(folder, NameOf(rank, AIMASTER_MPI_EXIT_SUFFIX).text, &text))
    Say("cannot write how MPI rank %u ended: %s", rank->rank, strerror(errno));
}

static _Noreturn void EndAs(int status) {
  if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
  const struct rlimit nothing = {0, 0};
  setrlimit(RLIMIT_CORE, &nothing);
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);  // the rank's core has been written, ours says nothing
  sigset_t none;
  sigemptyset(&none);
  signal(WTERMSIG(status), SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, NULL);
  kill(getpid(), WTERMSIG(status));
  _exit(128 + WTERMSIG(status));
}

static void SayWhyNot(const char* program, int error) { Say("cannot run %.800s: %s", program, strerror(error)); }

int RunMpiRank(char** argv) {
  if (!argv[0] || !argv[0][0]) {
    Say("usage: aimaster-shim " AIMASTER_MPI_RANK_OPTION " PROG ARGS…");
    return kShimExitUsage;
  }
  static const int kLeftAlone[] = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGTRAP,
                                   SIGSYS,  SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT};
  sigset_t caught;
  sigset_t mask;
  sigfillset(&caught);
  for (size_t i = 0; i < sizeof kLeftAlone / sizeof *kLeftAlone; ++i) sigdelset(&caught, kLeftAlone[i]);
  sigprocmask(SIG_BLOCK, &caught, &mask);
  const bool child_was_ignored = signal(SIGCHLD, SIG_DFL) == SIG_IGN;

  static struct Rank rank;
  rank.rank = NumberRank();
  const int folder = OpenFolder();
  if (folder >= 0) Touch(folder, AIMASTER_MPI_WATCHED);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    Say("cannot create a pipe: %s", strerror(errno));
    return 126;
  }
  const pid_t self = getpid();
  rank.pid = fork();
  if (rank.pid == 0) BecomeRank(argv, &mask, child_was_ignored, ends[1], self);
  close(ends[1]);
  if (rank.pid < 0) {
    SayWhyNot(argv[0], errno);
    return 126;
  }
  const struct Name alive = NameOf(&rank, AIMASTER_MPI_ALIVE_SUFFIX);
  if (folder >= 0) Touch(folder, alive.text);
  int32_t error = 0;
  if (read(ends[0], &error, sizeof error) == (ssize_t)sizeof error) {
    rank.failed_step = kStepExec;
    rank.failed_errno = error;
    SayWhyNot(argv[0], error);
  }
  close(ends[0]);
  AwaitEnd(&rank, &caught);
  const bool is_bad = !WIFEXITED(rank.wait_status) || WEXITSTATUS(rank.wait_status) != 0;
  if (folder >= 0 && (is_bad || LeftWithoutGoodbye())) WriteExit(folder, &rank, argv);
  if (folder >= 0) unlinkat(folder, alive.text, 0);
  EndAs(rank.wait_status);
}
