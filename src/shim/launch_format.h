// The document by which an agent tells the shim what to start: `launch`, mode 0600, in the attempt's directory.
//
// It is a row of strings, each ended by a NUL, because a command line and an environment may hold any other byte; so
// nothing is quoted, nothing is escaped, and reading it needs no library. JSON was the alternative: a parser several
// times the size of the rest of the shim, and no way to carry bytes that are not UTF-8.
//
//   aimaster-launch 1 \0          version; a shim refuses one that it does not know
//   instance=NAME \0              ┐
//   attempt=N \0                  │ header: all five, in any order; a key that the shim does not know is skipped,
//   stop_grace_ms=N \0            │ so a newer agent may add hints that an older shim can do without
//   log_dir=/ABSOLUTE \0          │ (what it can't do without takes a new version)
//   ranks=M \0                    ┘
//   lease=/ABSOLUTE \0            ┐ optional, anywhere in the header: the node's lease (lease_format.h), without
//   orphan_timeout_ms=N \0        ┘ which the shim watches over none; the timeout counts until it can be read
//   rank=GLOBAL \0                ┐
//   local=LOCAL \0                │ M times, in exactly this order; LOCAL is unique, it names the rank's files
//   cwd=/ABSOLUTE \0              │
//   argc=K \0  ARG \0 × K         │ raw strings; ARG[0] is not empty and is looked up in the PATH given below
//   envc=K \0  NAME=VALUE \0 × K  ┘ raw strings; the whole environment, nothing is inherited
//   end \0                        last, with nothing after it: a file cut short is noticed
//
// Numbers are plain decimal. A file that breaks a rule is refused as a whole and nothing is started.
// Promise: version 1 never changes its meaning; a shim reads every version that an agent of its own release or an older
// one wrote.
#ifndef AIMASTER_SHIM_LAUNCH_FORMAT_H_
#define AIMASTER_SHIM_LAUNCH_FORMAT_H_

#define AIMASTER_LAUNCH_VERSION "aimaster-launch 1"
#define AIMASTER_LAUNCH_END "end"

enum {
  kLaunchMaxBytes = 64 * 1024 * 1024,
  kLaunchMaxRanks = 1024,
  kLaunchMaxStrings = 65536,  // of one argv, and of one environment
  kLaunchMaxInstanceBytes = 255,
  kLaunchMaxPathBytes = 4095,
  kLaunchMaxNumber = 2000000000,  // of rank, local and attempt
  kLaunchMaxStopGraceMs = 24 * 3600 * 1000,
};
#define LAUNCH_MAX_ORPHAN_TIMEOUT_MS UINT32_MAX

// Signals to the shim. SIGTERM: stop, with grace; sent with a value greater than zero (sigqueue) it says that no master
// was there for so many milliseconds. SIGQUIT: stop at once. SIGUSR1, SIGUSR2: passed on to the ranks.
// SIGURG: there is a master; only where the lease can't be written. A shim that knows nothing of it ignores it.

// The other files of an attempt's directory. LOCAL stands for the rank's `local`.
#define AIMASTER_FILE_LAUNCH "launch"
#define AIMASTER_FILE_LOCK "lock"                   // fcntl write lock, held for the shim's whole life
#define AIMASTER_FILE_TOMBSTONE "tombstone"         // put by the agent: never start this attempt (again)
#define AIMASTER_FILE_STARTED "started.json"        // identities of the shim and the ranks
#define AIMASTER_FILE_DESCENDANTS "descendants"     // lines "pid start_ticks"; gone once the attempt has ended
#define AIMASTER_FILE_UNKILLABLE "unkillable.json"  // there while processes survive SIGKILL
#define AIMASTER_FILE_ENDED "ended.json"            // no descendant exists any more
#define AIMASTER_FILE_EXIT_FORMAT "rank%u.exit.json"
// The exit files once more in a memfd of this name, one page of kShimExitFileBytes per rank: an agent finds it among
// the shim's descriptors (/proc/PID/fd) when the file system takes nothing any more. It lives as long as the shim.
#define AIMASTER_KEPT_EXITS "aimaster-exits"
#define AIMASTER_FILE_OUT_FORMAT "rank%u.out"  // in log_dir, as is .err
#define AIMASTER_FILE_ERR_FORMAT "rank%u.err"

enum {
  kShimExitFileBytes = 4096,  // an exit file has this size from the start; JSON, then blanks, then a newline

  kShimExitUsage = 64,       // the command line
  kShimExitBadLaunch = 65,   // the launch file breaks its format
  kShimExitNoLaunch = 66,    // no directory, or no launch file in it
  kShimExitCrashLoop = 70,   // --supervise: the command dies again and again
  kShimExitSystem = 71,      // the system refuses something that we can't do without; nothing was started
  kShimExitCantCreate = 73,  // the lock can't be created; nothing was started
  kShimExitInputOutput =
      74,                  // no room for the exit files (nothing was started), or an exit status could not be written
  kShimExitLockHeld = 75,  // another shim lives here; nothing was done
};

#endif  // AIMASTER_SHIM_LAUNCH_FORMAT_H_
