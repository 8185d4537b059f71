#include "shim/stop.h"

#include <signal.h>

#include "shim/descendants.h"
#include "shim/durable.h"
#include "shim/process.h"
#include "shim/report.h"

// A process that forks while we look may be missed once; three looks find what still spawns helpers at its end.
enum { kTerminatePasses = 3 };
static const int64_t kLeftoverGraceNs = 2000 * MILLISECONDS;
static const int64_t kFirstKillIntervalNs = 10 * MILLISECONDS;
static const int64_t kLastKillIntervalNs = 500 * MILLISECONDS;

static bool IsLiveRank(const struct Attempt* attempt, pid_t pid) {
  for (uint32_t i = 0; i < attempt->rank_count; ++i) {
    if (attempt->ranks[i].state == kRankLive && attempt->ranks[i].pid == pid) return true;
  }
  return false;
}

// A rank that is not reaped keeps its pid, so plain kill() can't meet another process.
static void SignalRanks(struct Attempt* attempt, int signal_number) {
  for (uint32_t i = 0; i < attempt->rank_count; ++i) {
    struct Rank* rank = &attempt->ranks[i];
    if (rank->state != kRankLive) continue;
    if (attempt->orphaned_ms == 0) {
      rank->stopped_by_us = true;
    } else if (!rank->stopped_by_us) {
      rank->orphaned_ms = attempt->orphaned_ms;
    }
    kill(rank->pid, signal_number);
  }
}

// SIGTERM, once, for every descendant whose rank is gone; SIGCONT, because a stopped process can't obey.
static void TerminateOrphans(struct Attempt* attempt) {
  bool found = true;
  for (int pass = 0; found && pass < kTerminatePasses; ++pass) {
    size_t count;
    struct Descendant* all = ScanDescendants(kScanAll, SyncPid(), &count);
    found = false;
    for (size_t i = 0; i < count; ++i) {
      if (all[i].branch == 0 || all[i].terminated || IsLiveRank(attempt, all[i].branch)) continue;
      found = true;
      all[i].terminated = true;
      SignalProcess(all[i].pid, all[i].start_ticks, SIGTERM);
      SignalProcess(all[i].pid, all[i].start_ticks, SIGCONT);
    }
  }
}

static void BeginKilling(struct Attempt* attempt) {
  attempt->phase = kPhaseKilling;
  attempt->kill_interval_ns = kFirstKillIntervalNs;
  attempt->next_kill_ns = NowNs();
}

void BeginStop(struct Attempt* attempt, enum Stop stop) {
  if (stop <= attempt->stop) return;
  attempt->stop = stop;
  if (attempt->phase == kPhaseKilling) return;
  if (stop == kStopKill) {
    BeginKilling(attempt);
    return;
  }
  Reap(attempt);  // a rank that ended before now was not stopped by us
  const int64_t deadline = NowNs() + attempt->stop_grace_ns;
  if (attempt->phase == kPhaseRunning || deadline < attempt->deadline_ns) attempt->deadline_ns = deadline;
  if (attempt->phase == kPhaseLeftover) return;
  attempt->phase = kPhaseStopping;
  SignalRanks(attempt, SIGTERM);
  SignalRanks(attempt, SIGCONT);
  attempt->rank_ended = true;  // earlier ranks may have left something
}

void BeginOrphanStop(struct Attempt* attempt, int64_t orphaned_ms) {
  if (attempt->stop == kStopNone) attempt->orphaned_ms = orphaned_ms;
  BeginStop(attempt, kStopTerm);
}

static void KillPass(struct Attempt* attempt) {
  Reap(attempt);
  SignalRanks(attempt, SIGKILL);
  size_t count;
  struct Descendant* all = ScanDescendants(kScanAndKill, SyncPid(), &count);
  const int64_t now = NowNs();
  bool found = false;
  for (size_t i = 0; i < count; ++i) {
    if (all[i].branch == 0 || !KillDescendant(&all[i], now)) continue;
    found = true;
    attempt->swept += !IsLiveRank(attempt, all[i].pid);
  }
  // What still makes new processes is chased; what only takes its time to die is not.
  attempt->kill_interval_ns = found ? kFirstKillIntervalNs : attempt->kill_interval_ns * 2;
  if (attempt->kill_interval_ns > kLastKillIntervalNs) attempt->kill_interval_ns = kLastKillIntervalNs;
  attempt->next_kill_ns = now + attempt->kill_interval_ns;
  WriteUnkillable(attempt, all, count, now);
}

int64_t StopTick(struct Attempt* attempt) {
  const int64_t now = NowNs();
  const bool rank_ended = attempt->rank_ended;
  attempt->rank_ended = false;
  if (attempt->phase == kPhaseRunning && attempt->live_ranks == 0) {
    attempt->phase = kPhaseLeftover;
    attempt->deadline_ns =
        now + (attempt->stop_grace_ns < kLeftoverGraceNs ? attempt->stop_grace_ns : kLeftoverGraceNs);
    TerminateOrphans(attempt);
  } else if (attempt->phase == kPhaseStopping && rank_ended) {
    TerminateOrphans(attempt);
  }
  if ((attempt->phase == kPhaseStopping || attempt->phase == kPhaseLeftover) && now >= attempt->deadline_ns) {
    BeginKilling(attempt);
  }
  if (attempt->phase == kPhaseKilling && NowNs() >= attempt->next_kill_ns) KillPass(attempt);
  switch (attempt->phase) {
    case kPhaseRunning:
      return INT64_MAX;
    case kPhaseStopping:
    case kPhaseLeftover:
      return attempt->deadline_ns;
    case kPhaseKilling:
      return attempt->next_kill_ns;
  }
  return INT64_MAX;
}
