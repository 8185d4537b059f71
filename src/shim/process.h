// What this process is made of: its session, its descriptors, its clock, and the identities of processes.
// Both modes of the shim share it.
#ifndef AIMASTER_SHIM_PROCESS_H_
#define AIMASTER_SHIM_PROCESS_H_

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

int64_t NowNs(void);       // monotonic, for durations
int64_t WallTimeNs(void);  // for people and other nodes

// Opens /dev/null where fd 0, 1 or 2 is closed, so that no file of ours ever takes their place.
void EnsureStandardFds(void);
void CloseOtherFds(void);

// Leads a session of its own from here on. False when that is impossible (errno).
bool OwnSession(void);

// Asks the kernel to kill others first when memory runs out. Returns the value from before, for RestoreOomScore.
int LowerOomScore(void);
void RestoreOomScore(int before);

// Blocks `count` signals, gives them and SIGCHLD their default meaning (an inherited SIG_IGN on SIGCHLD would throw
// exit statuses away) and returns a non-blocking signalfd for them, or -1.
int CatchSignals(const int* signals, int count);

// Ignores what could end us without anybody meaning to.
void IgnoreSignals(void);

// For a child before exec: default dispositions, nothing blocked.
void ResetSignals(void);

// What /proc/<pid>/stat says. A process is known by pid and start_ticks, in one boot.
struct ProcessStat {
  pid_t parent;
  pid_t group;
  char state;
  bool dead;  // a zombie as a whole, not only its first thread
  uint64_t start_ticks;
  char command[64];  // as the kernel cuts it
};
bool ReadProcessStat(pid_t pid, struct ProcessStat* stat);

// Sends `signal` to exactly that process. False when it is gone (or is another by now) or we may not (errno).
bool SignalProcess(pid_t pid, uint64_t start_ticks, int signal);

// Whether /proc shows the processes of our own pid namespace; without it no descendant can be found.
bool ProcIsOurs(void);

#endif  // AIMASTER_SHIM_PROCESS_H_
