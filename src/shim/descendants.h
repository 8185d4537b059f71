// Finds all processes below this one.
//
// A descendant can leave its session, its group and its environment, but not its ancestry: we are its subreaper, so
// when its parent dies it becomes our own child. The walk over /proc/<pid>/stat gives everyone's parent, and the chain
// of parents says who is ours. /proc/<pid>/task/<tid>/children was considered: it has to be read for every thread of
// every rank, and some kernels lack it. A cgroup was considered: an ordinary user often has none.
#ifndef AIMASTER_SHIM_DESCENDANTS_H_
#define AIMASTER_SHIM_DESCENDANTS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct Descendant {
  pid_t pid;
  pid_t parent;
  pid_t branch;  // the child of ours that it descends from, or is; 0: a stranger
  char state;
  bool terminated;  // told to end by SIGTERM
  uint64_t start_ticks;
  int64_t killed_at_ns;  // when we first sent SIGKILL, or 0
};

enum Scan {
  kScanAll,        // reads every process
  kScanNewcomers,  // believes that strangers stay strangers: many times cheaper, wrong only where a pid came round
                   // again
  kScanAndKill,    // reads every process, and kills our own children and their groups as they are met
};

// Looks at all processes. What was noted of a descendant (terminated, killed_at_ns) is kept from scan to scan.
// `excluded` is a child that is not meant. The result (strangers included, dead ones not) is good until the next scan.
struct Descendant* ScanDescendants(enum Scan scan, pid_t excluded, size_t* count);

// Sends SIGKILL and notes when. True when this is the first time for that process.
bool KillDescendant(struct Descendant* descendant, int64_t now_ns);

#endif  // AIMASTER_SHIM_DESCENDANTS_H_
