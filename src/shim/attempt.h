// One life of one instance: what the shim holds in its memory while the ranks run.
// attempt.c starts, waits and records; stop.c ends; report.c writes what others read about the living.
#ifndef AIMASTER_SHIM_ATTEMPT_H_
#define AIMASTER_SHIM_ATTEMPT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/launch.h"
#include "shim/lease.h"
#include "shim/rank.h"

#define MILLISECONDS (INT64_C(1000000))

enum Stop { kStopNone, kStopTerm, kStopKill };

// Only ever forwards.
enum Phase {
  kPhaseRunning,   // ranks live, nobody asked for an end
  kPhaseStopping,  // ranks were told to end and have until the deadline
  kPhaseLeftover,  // the ranks ended by themselves; what they left has until the deadline
  kPhaseKilling,   // everything is killed, again and again, until nothing is left
};

struct Attempt {
  int directory;
  int signals;
  int failures;  // the reading end of the start pipe; -1 once every rank is its own program, or failed to be

  char* launch_bytes;
  struct Launch launch;  // empty once all ranks have started well
  int64_t stop_grace_ns;

  struct Rank ranks[kLaunchMaxRanks];
  uint32_t rank_count;
  uint32_t live_ranks;
  bool rank_ended;  // since StopTick looked last

  int64_t started_due_ns;  // when started.json is written although some exec hangs; 0: it is written
  bool held_signals[2];    // USR1, USR2: arrived before the ranks could mean anything by them
  int64_t retry_exit_ns;   // when exit files that could not be written are tried again; 0: none
  bool told_exit_problem;
  bool told_started_problem;
  bool told_descendants_problem;
  int kept_exits;  // the exit files once more, in memory (launch_format.h); -1: there is no such memory

  struct LeaseReader lease;
  int64_t orphaned_ms;  // how long there was no master when we stopped for it; 0: that was not the reason

  enum Stop stop;
  enum Phase phase;
  int64_t deadline_ns;
  int64_t next_kill_ns;
  int64_t kill_interval_ns;
  uint64_t swept;
  uint64_t unkillable_seen;  // digest of what unkillable.json says; 0: no such file

  int64_t next_scan_ns;
  uint32_t scans;
  uint64_t descendants_seen;  // digest of what the descendants file says
};

// Mode 1 of the shim. Returns the exit code (launch_format.h).
int RunAttempt(const char* path);

// Collects all that ended. False when no child is left, which means: no descendant at all, since we are the subreaper.
bool Reap(struct Attempt* attempt);

#endif  // AIMASTER_SHIM_ATTEMPT_H_
