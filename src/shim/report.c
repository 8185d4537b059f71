#include "shim/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shim/durable.h"
#include "shim/files.h"
#include "shim/process.h"

static const int64_t kRetryStartedNs = 500 * MILLISECONDS;
enum { kUnkillableNamed = 32, kFullScanEvery = 16 };
static const int64_t kScanEveryNs = 2000 * MILLISECONDS;
static const int64_t kScanCostFactor = 1000;
static const int64_t kUnkillableAfterNs = 3000 * MILLISECONDS;

static bool Put(struct Attempt* attempt, const char* name, const struct Text* text) {
  const bool ok = PutFile(attempt->directory, name, text);
  if (!ok) Say("cannot write %s: %s", name, strerror(errno));
  return ok;
}

void WriteStarted(struct Attempt* attempt) {
  static char bytes[256 * 1024];
  struct Text text = TEXT_OVER(bytes);
  char boot_id[64] = "";
  struct ProcessStat self;
  ReadSmallFile("/proc/sys/kernel/random/boot_id", boot_id, sizeof boot_id);
  boot_id[strcspn(boot_id, "\n")] = '\0';
  const bool known = ReadProcessStat(getpid(), &self);
  Print(&text, "{\"shim\":{\"pid\":%d,\"start_ticks\":%llu},\"boot_id\":", (int)getpid(),
        known ? (unsigned long long)self.start_ticks : 0);
  PrintJsonString(&text, boot_id, sizeof boot_id);
  Print(&text, ",\"session\":%d,\"ranks\":[", (int)getsid(0));
  const char* separator = "";
  for (uint32_t i = 0; i < attempt->rank_count; ++i) {
    const struct Rank* rank = &attempt->ranks[i];
    if (rank->pid == 0) continue;
    Print(&text, "%s{\"rank\":%u,\"local\":%u,\"pid\":%d,\"start_ticks\":%llu}", separator, rank->rank, rank->local,
          (int)rank->pid, (unsigned long long)rank->start_ticks);
    separator = ",";
  }
  Print(&text, "],\"time_ns\":%lld}\n", (long long)WallTimeNs());
  // Without it nobody knows our ranks; said once, tried until it is there.
  if (PutFile(attempt->directory, AIMASTER_FILE_STARTED, &text)) {
    attempt->started_due_ns = 0;
    return;
  }
  if (!attempt->told_started_problem) Say("cannot write %s: %s; trying again", AIMASTER_FILE_STARTED, strerror(errno));
  attempt->told_started_problem = true;
  attempt->started_due_ns = NowNs() + kRetryStartedNs;
}

static uint64_t Digest(uint64_t digest, const struct Descendant* process) {
  const uint64_t kPrime = UINT64_C(0x100000001b3);
  return ((digest ^ (uint64_t)process->pid) * kPrime ^ process->start_ticks) * kPrime;
}

static bool PutDescendants(int directory, const struct Descendant* all, size_t count) {
  char bytes[4096];
  struct Text text = TEXT_OVER(bytes);
  const char* beside = AIMASTER_FILE_DESCENDANTS ".new";
  const int fd = openat(directory, beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return false;
  bool ok = true;
  for (size_t i = 0; i < count; ++i) {
    if (all[i].branch == 0) continue;
    Print(&text, "%d %llu\n", (int)all[i].pid, (unsigned long long)all[i].start_ticks);
    if (text.capacity - text.length < 64) {
      ok = ok && WriteAll(fd, bytes, text.length);
      text.length = 0;
    }
  }
  ok = ok && WriteAll(fd, bytes, text.length);
  ok = close(fd) == 0 && ok;
  return ok && renameat(directory, beside, directory, AIMASTER_FILE_DESCENDANTS) == 0;
}

static int64_t OwnCpuNs(void) {
  struct timespec spent;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return (int64_t)spent.tv_sec * 1000000000 + spent.tv_nsec;
}

int64_t WriteDescendants(struct Attempt* attempt) {
  const int64_t before = OwnCpuNs();
  size_t count;
  const enum Scan scan = attempt->scans++ % kFullScanEvery == 0 ? kScanAll : kScanNewcomers;
  const struct Descendant* all = ScanDescendants(scan, SyncPid(), &count);
  uint64_t digest = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < count; ++i) {
    if (all[i].branch != 0) digest = Digest(digest, &all[i]);
  }
  if (digest != attempt->descendants_seen) {
    const bool ok = PutDescendants(attempt->directory, all, count);
    if (ok) attempt->descendants_seen = digest;  // else it is written at the next look
    if (!ok && !attempt->told_descendants_problem) {
      Say("cannot write %s: %s; trying again", AIMASTER_FILE_DESCENDANTS, strerror(errno));
    }
    attempt->told_descendants_problem = !ok;
  }
  const int64_t pause = (OwnCpuNs() - before) * kScanCostFactor;
  return NowNs() + (pause > kScanEveryNs ? pause : kScanEveryNs);
}

void WriteUnkillable(struct Attempt* attempt, const struct Descendant* all, size_t count, int64_t now_ns) {
  char bytes[8192];
  struct Text text = TEXT_OVER(bytes);
  uint64_t digest = 0;
  int named = 0;
  Print(&text, "{\"time_ns\":%lld,\"processes\":[", (long long)WallTimeNs());
  for (size_t i = 0; i < count && named < kUnkillableNamed; ++i) {
    const struct Descendant* process = &all[i];
    if (process->branch == 0 || process->killed_at_ns == 0) continue;
    if (now_ns - process->killed_at_ns < kUnkillableAfterNs) continue;
    struct ProcessStat stat;
    if (!ReadProcessStat(process->pid, &stat) || stat.dead || stat.start_ticks != process->start_ticks) continue;
    Print(&text, "%s{\"pid\":%d,\"start_ticks\":%llu,\"state\":\"%c\",\"command\":", named++ ? "," : "",
          (int)process->pid, (unsigned long long)process->start_ticks, stat.state);
    PrintJsonString(&text, stat.command, sizeof stat.command);
    Print(&text, "}");
    digest = Digest(digest, process);
  }
  Print(&text, "]}\n");
  if (digest == attempt->unkillable_seen) return;
  attempt->unkillable_seen = digest;
  if (named == 0) {
    unlinkat(attempt->directory, AIMASTER_FILE_UNKILLABLE, 0);
  } else {
    Say("%d processes outlive their SIGKILL, see %s", named, AIMASTER_FILE_UNKILLABLE);
    if (!Put(attempt, AIMASTER_FILE_UNKILLABLE, &text)) attempt->unkillable_seen = 0;  // at the next pass again
  }
}

void WriteEnded(struct Attempt* attempt) {
  static const char* const kNames[] = {"none", "term", "kill"};
  char bytes[256];
  struct Text text = TEXT_OVER(bytes);
  unlinkat(attempt->directory, AIMASTER_FILE_DESCENDANTS, 0);
  unlinkat(attempt->directory, AIMASTER_FILE_UNKILLABLE, 0);
  Print(&text, "{\"time_ns\":%lld,\"swept\":%llu,\"stop\":\"%s\"", (long long)WallTimeNs(),
        (unsigned long long)attempt->swept, kNames[attempt->stop]);
  if (attempt->orphaned_ms != 0) Print(&text, ",\"orphaned_ms\":%lld", (long long)attempt->orphaned_ms);
  Print(&text, "}");
  if (!PutReservedFile(attempt->directory, AIMASTER_FILE_ENDED, &text)) {
    Say("cannot write %s: %s", AIMASTER_FILE_ENDED, strerror(errno));
  }
}
