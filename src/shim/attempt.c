#include "shim/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/begin.h"
#include "shim/durable.h"
#include "shim/files.h"
#include "shim/process.h"
#include "shim/report.h"
#include "shim/stop.h"

static const int64_t kStartedAtLatestNs = 2000 * MILLISECONDS;
static const int64_t kFirstScanAfterNs = 500 * MILLISECONDS;
static const int64_t kRetryExitNs = 500 * MILLISECONDS;
enum { kFinalRetries = 60 };

static struct Attempt the_attempt;

static int StartRanks(struct Attempt* attempt) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    Say("cannot create a pipe: %s", strerror(errno));
    return kShimExitSystem;
  }
  const int oom_score = LowerOomScore();
  for (uint32_t i = 0; i < attempt->rank_count; ++i) {
    StartRank(&attempt->ranks[i], i, &attempt->launch, ends[1], oom_score);
    attempt->live_ranks += attempt->ranks[i].state == kRankLive;
  }
  close(ends[1]);
  attempt->failures = ends[0];
  attempt->started_due_ns = NowNs() + kStartedAtLatestNs;
  attempt->next_scan_ns = NowNs() + kFirstScanAfterNs;
  return 0;
}

static void Forward(struct Attempt* attempt, int signal_number) {
  if (attempt->failures >= 0) {
    // Between fork and exec the signal would only kill.
    attempt->held_signals[signal_number == SIGUSR2] = true;
    return;
  }
  for (uint32_t i = 0; i < attempt->rank_count; ++i) {
    if (attempt->ranks[i].state == kRankLive) kill(attempt->ranks[i].pid, signal_number);
  }
}

static void AllStarted(struct Attempt* attempt) {
  close(attempt->failures);
  attempt->failures = -1;
  if (attempt->started_due_ns != 0) WriteStarted(attempt);
  bool failed = false;
  for (uint32_t i = 0; i < attempt->rank_count; ++i) failed = failed || attempt->ranks[i].failed_step != kStepNone;
  if (!failed) {
    FreeLaunch(&attempt->launch);
    free(attempt->launch_bytes);
    attempt->launch_bytes = NULL;
  }
  if (attempt->held_signals[0]) Forward(attempt, SIGUSR1);
  if (attempt->held_signals[1]) Forward(attempt, SIGUSR2);
}

static void ReadFailures(struct Attempt* attempt) {
  struct StartFailure failure;
  while (attempt->failures >= 0) {
    const ssize_t got = read(attempt->failures, &failure, sizeof failure);
    if (got == (ssize_t)sizeof failure && failure.index < attempt->rank_count) {
      attempt->ranks[failure.index].failed_step = failure.step;
      attempt->ranks[failure.index].failed_errno = failure.error;
    } else if (got == 0) {
      AllStarted(attempt);
    } else if (got < 0 && errno != EINTR) {
      return;
    }
  }
}

static void KeepExit(int kept_exits, uint32_t index, const struct Text* text) {
  if (kept_exits < 0) return;
  // Where there is no memory either, the file is all there is.
  (void)!pwrite(kept_exits, text->bytes, text->length, (off_t)index * kShimExitFileBytes);
}

// Writes the exit files of all that ended; what fails is tried again later. Returns 0, or the last errno.
static int RecordExits(struct Attempt* attempt) {
  int problem = 0;
  attempt->retry_exit_ns = 0;
  for (uint32_t i = 0; i < attempt->rank_count; ++i) {
    struct Rank* rank = &attempt->ranks[i];
    if (rank->state != kRankEnded) continue;
    char name[64];
    char bytes[kShimExitFileBytes];
    struct Text text = TEXT_OVER(bytes);
    ExitFileName(rank, name, sizeof name);
    PrintExit(&text, rank, attempt->launch.ranks ? &attempt->launch.ranks[i] : NULL, attempt->launch.log_dir);
    KeepExit(attempt->kept_exits, i, &text);
    if (PutReservedFile(attempt->directory, name, &text)) {
      rank->state = kRankRecorded;
      continue;
    }
    problem = errno ? errno : EIO;
    if (!attempt->told_exit_problem) Say("cannot write %s: %s; trying again", name, strerror(problem));
    attempt->told_exit_problem = true;
    attempt->retry_exit_ns = NowNs() + kRetryExitNs;
  }
  return problem;
}

bool Reap(struct Attempt* attempt) {
  bool children = true;
  bool ended = false;
  for (;;) {
    int status;
    struct rusage usage;
    const pid_t pid = wait4(-1, &status, WNOHANG, &usage);
    if (pid < 0 && errno == EINTR) continue;
    children = pid >= 0;
    if (pid <= 0) break;
    for (uint32_t i = 0; i < attempt->rank_count; ++i) {
      struct Rank* rank = &attempt->ranks[i];
      if (rank->state != kRankLive || rank->pid != pid) continue;
      // The time first, for all of them; the files after that.
      NoteEnd(rank, status, &usage);
      --attempt->live_ranks;
      ended = true;
    }
  }
  if (ended) {
    attempt->rank_ended = true;
    ReadFailures(attempt);  // a rank that failed to start said so before it ended
    RecordExits(attempt);
  }
  return children;
}

static bool NotYetDurable(uint32_t index, char* name, size_t capacity) {
  const struct Rank* rank = &the_attempt.ranks[index];
  if (rank->state != kRankRecorded || rank->durable) return false;
  ExitFileName(rank, name, capacity);
  return true;
}

static void MakeDurable(struct Attempt* attempt) {
  char name[64];
  bool needed = false;
  for (uint32_t i = 0; i < attempt->rank_count; ++i) needed = needed || NotYetDurable(i, name, sizeof name);
  if (!needed || !StartSync(attempt->directory, NotYetDurable, attempt->rank_count)) return;
  for (uint32_t i = 0; i < attempt->rank_count; ++i) {
    attempt->ranks[i].durable = attempt->ranks[i].durable || attempt->ranks[i].state == kRankRecorded;
  }
}

static void HandleSignals(struct Attempt* attempt) {
  struct signalfd_siginfo signal_info;
  while (read(attempt->signals, &signal_info, sizeof signal_info) == (ssize_t)sizeof signal_info) {
    const int number = (int)signal_info.ssi_signo;
    const bool is_orphaned = signal_info.ssi_code == SI_QUEUE && signal_info.ssi_int > 0;
    if (number == SIGTERM && is_orphaned) BeginOrphanStop(attempt, signal_info.ssi_int);
    if (number == SIGTERM && !is_orphaned) BeginStop(attempt, kStopTerm);
    if (number == SIGQUIT) BeginStop(attempt, kStopKill);
    if (number == SIGUSR1 || number == SIGUSR2) Forward(attempt, number);
    if (number == SIGURG) LeaseRenewed(&attempt->lease.watch, NowNs());
  }
}

static int64_t Earlier(int64_t left, int64_t right) { return left < right ? left : right; }

// Whoever is above us may be gone, or stopped: then nobody but us can end this.
static int64_t WatchLease(struct Attempt* attempt) {
  if (attempt->phase != kPhaseRunning || attempt->stop != kStopNone) return INT64_MAX;
  int64_t due;
  const int64_t orphaned_ns = LookAtLease(&attempt->lease, &due);
  if (orphaned_ns == 0) return due;
  Say("no master for %lld.%lld s, --orphan-timeout is %lld.%lld s, and no agent that sees to it: stopping the ranks",
      (long long)(orphaned_ns / 1000000000), (long long)(orphaned_ns / 100000000 % 10),
      (long long)(attempt->lease.timeout_ns / 1000000000), (long long)(attempt->lease.timeout_ns / 100000000 % 10));
  BeginOrphanStop(attempt, orphaned_ns / MILLISECONDS);
  return INT64_MAX;
}

// What is due by the clock; returns when the next thing is.
static int64_t Tick(struct Attempt* attempt) {
  int64_t due = WatchLease(attempt);
  due = Earlier(due, StopTick(attempt));
  const int64_t now = NowNs();
  if (attempt->started_due_ns != 0) {
    if (now >= attempt->started_due_ns) WriteStarted(attempt);
    if (attempt->started_due_ns != 0) due = Earlier(due, attempt->started_due_ns);
  }
  if (attempt->retry_exit_ns != 0) {
    if (now >= attempt->retry_exit_ns) RecordExits(attempt);
    if (attempt->retry_exit_ns != 0) due = Earlier(due, attempt->retry_exit_ns);
  }
  if (attempt->phase != kPhaseKilling) {
    if (now >= attempt->next_scan_ns) attempt->next_scan_ns = WriteDescendants(attempt);
    due = Earlier(due, attempt->next_scan_ns);
  }
  return due;
}

static void Wait(const struct Attempt* attempt, int64_t due_ns) {
  struct pollfd events[2] = {{.fd = attempt->signals, .events = POLLIN}, {.fd = attempt->failures, .events = POLLIN}};
  const int64_t rest = due_ns - NowNs();
  const struct timespec pause = {rest > 0 ? rest / 1000000000 : 0, rest > 0 ? rest % 1000000000 : 0};
  ppoll(events, 2, due_ns == INT64_MAX ? NULL : &pause, NULL);
}

static int Finish(struct Attempt* attempt) {
  ReadFailures(attempt);
  int problem = RecordExits(attempt);
  // Where the directory itself is gone, nobody can be told any more.
  for (int retry = 0; problem != 0 && problem != ENOENT && retry < kFinalRetries; ++retry) {
    poll(NULL, 0, (int)(kRetryExitNs / MILLISECONDS));
    problem = RecordExits(attempt);
  }
  if (problem != 0) Say("an exit status could not be written: %s", strerror(problem));
  WriteEnded(attempt);
  AwaitSync();
  SyncNow(attempt->directory, NotYetDurable, attempt->rank_count);
  return problem == 0 ? 0 : kShimExitInputOutput;
}

int RunAttempt(const char* path) {
  struct Attempt* attempt = &the_attempt;
  int code;
  if (BeginAttempt(attempt, path, &code) == kBeginOver) return code;
  if ((code = StartRanks(attempt)) != 0) return code;
  RecordExits(attempt);  // of those for which there was no process
  while (Reap(attempt)) {
    ReapSync();
    MakeDurable(attempt);
    Wait(attempt, Tick(attempt));
    ReadFailures(attempt);
    HandleSignals(attempt);
  }
  return Finish(attempt);
}
