#include "shim/descendants.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/process.h"

// Beyond this many processes on a node the rest is seen in a later pass, when the first are gone.
enum { kMaxProcesses = 131072, kUnknown = -1 };

// Memory that is never touched costs nothing, so a table for the largest node is free on a small one.
static struct Descendant tables[2][kMaxProcesses];
static size_t counts[2];
static int current;

static struct Descendant* Find(int table, pid_t pid) {
  size_t low = 0;
  size_t high = counts[table];
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (tables[table][middle].pid < pid) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < counts[table] && tables[table][low].pid == pid ? &tables[table][low] : NULL;
}

static int ByPid(const void* left, const void* right) {
  const pid_t a = ((const struct Descendant*)left)->pid;
  const pid_t b = ((const struct Descendant*)right)->pid;
  return (a > b) - (a < b);
}

// Kills a child of ours, and its process group: one that makes its next self and ends is gone before we come to it, but
// a group is killed as a whole, the newborn included. No group can hold a stranger: a group lies within a session, and
// ours and those made below us hold descendants only. The child is not reaped meanwhile, so neither its pid nor the
// group's id can have come round to somebody else.
static void KillChild(pid_t pid, pid_t group) {
  if (group > 1 && group != getpgrp()) kill(-group, SIGKILL);
  kill(pid, SIGKILL);
}

// Fills `process` with what is known of `pid`; false when it is dead already.
static bool Look(pid_t pid, enum Scan scan, struct Descendant* process) {
  struct ProcessStat stat;
  const struct Descendant* before = Find(1 - current, pid);
  if (scan == kScanNewcomers && before && before->branch == 0) {
    *process = *before;
    return true;
  }
  if (!ReadProcessStat(pid, &stat)) return false;
  // Now, before it can fork once more; KillDescendant counts it later.
  if (scan == kScanAndKill && stat.parent == getpid()) KillChild(pid, stat.group);
  if (stat.dead) return false;
  memset(process, 0, sizeof *process);
  if (before && before->start_ticks == stat.start_ticks) *process = *before;
  process->pid = pid;
  process->parent = stat.parent;
  process->branch = kUnknown;
  process->state = stat.state;
  process->start_ticks = stat.start_ticks;
  return true;
}

static void Add(pid_t pid, enum Scan scan) {
  if (counts[current] == kMaxProcesses) return;
  counts[current] += Look(pid, scan, &tables[current][counts[current]]);
}

struct LinuxDirent64 {
  uint64_t inode;
  int64_t offset;
  unsigned short length;
  unsigned char type;
  char name[];
};

static void ReadProc(enum Scan scan, pid_t excluded) {
  static _Alignas(16) char buffer[16384];
  const pid_t self = getpid();
  const int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  for (long got; (got = syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0;) {
    for (long at = 0; at < got;) {
      const struct LinuxDirent64* entry = (const struct LinuxDirent64*)(buffer + at);
      at += entry->length;
      if (entry->name[0] < '1' || entry->name[0] > '9') continue;
      const pid_t pid = (pid_t)atoi(entry->name);
      if (pid != self && pid != excluded) Add(pid, scan);
    }
  }
  close(fd);
}

// A parent that is missing died while we read, and its child got another: ask again.
static struct Descendant* ParentOf(struct Descendant* process) {
  struct Descendant* parent = Find(current, process->parent);
  struct ProcessStat stat;
  if (!parent && process->parent > 0 && ReadProcessStat(process->pid, &stat)) {
    process->parent = stat.parent;
    parent = Find(current, process->parent);
  }
  return parent;
}

static void FindBranch(struct Descendant* process, pid_t self) {
  pid_t branch = kUnknown;
  struct Descendant* at = process;
  for (size_t steps = 0; branch == kUnknown; ++steps) {
    if (at->branch != kUnknown) {
      branch = at->branch;
    } else if (at->parent == self) {
      branch = at->pid;
    } else {
      struct Descendant* parent = ParentOf(at);
      if (at->parent == self) {
        branch = at->pid;
      } else if (!parent || steps == counts[current]) {
        branch = 0;
      } else {
        at = parent;
      }
    }
  }
  for (at = process; at && at->branch == kUnknown; at = Find(current, at->parent)) at->branch = branch;
}

struct Descendant* ScanDescendants(enum Scan scan, pid_t excluded, size_t* count) {
  const pid_t self = getpid();
  current = 1 - current;
  counts[current] = 0;
  ReadProc(scan, excluded);
  struct Descendant* table = tables[current];
  for (size_t i = 1; i < counts[current]; ++i) {
    if (table[i - 1].pid >= table[i].pid) {
      qsort(table, counts[current], sizeof *table, ByPid);
      break;
    }
  }
  for (size_t i = 0; i < counts[current]; ++i) FindBranch(&table[i], self);
  *count = counts[current];
  return table;
}

bool KillDescendant(struct Descendant* descendant, int64_t now_ns) {
  const bool first = descendant->killed_at_ns == 0;
  const bool sent = descendant->parent == getpid() ? kill(descendant->pid, SIGKILL) == 0
                                                   : SignalProcess(descendant->pid, descendant->start_ticks, SIGKILL);
  if (first && (sent || errno == EPERM)) descendant->killed_at_ns = now_ns;
  return first && sent;
}
