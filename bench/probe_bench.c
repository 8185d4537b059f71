// What the record of one operation costs the thread that communicates: its beginning and its end, each with a look at
// the clock; and the clock alone, as it is and as the processor's own counter. Of each the median and the worst of a
// thousand. AIMASTER_C4D_DIR names the folder of the record; else it is one in memory.
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "probe/recorder.h"
#include "probe/recorder_state.h"

enum { kTimes = 1000000 };
static uint32_t the_times[kTimes];

static uint64_t Counter(void) {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return NowNs();
#endif
}

static int Compare(const void* a, const void* b) {
  const uint32_t left = *(const uint32_t*)a, right = *(const uint32_t*)b;
  return left < right ? -1 : left > right;
}

static double the_ns_per_count, the_counter_ns;

static void Print(const char* what) {
  qsort(the_times, kTimes, sizeof *the_times, Compare);
  const double p50 = the_times[kTimes / 2] * the_ns_per_count - the_counter_ns;
  const double p999 = the_times[kTimes - kTimes / 1000] * the_ns_per_count - the_counter_ns;
  printf("%-44s p50 %6.1f ns   p99.9 %7.1f ns\n", what, p50, p999);
}

// With the file in it, which stays mapped.
static void RemoveFolder(const char* folder) {
  char path[512];
  DIR* entries = opendir(folder);
  for (struct dirent* entry; entries && (entry = readdir(entries));) {
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    unlink(path);
  }
  if (entries) closedir(entries);
  rmdir(folder);
}

#define MEASURE(what, ...)                          \
  do {                                              \
    for (int i = 0; i < kTimes; ++i) {              \
      const uint64_t begin = Counter();             \
      __VA_ARGS__;                                  \
      the_times[i] = (uint32_t)(Counter() - begin); \
    }                                               \
    Print(what);                                    \
  } while (0)

int main(void) {
  static const char* const kNames[] = {"MPI_Allreduce", "MPI_Irecv", "MPI_Waitall"};
  char own[] = "/dev/shm/probe_bench-XXXXXX";
  const bool is_own = !getenv(AIMASTER_RECORD_FOLDER) && mkdtemp(own);
  if (is_own) setenv(AIMASTER_RECORD_FOLDER, own, 1);
  struct Recorder* recorder = RecorderOpen(kRecordMpi, kNames, 3);
  if (is_own) RemoveFolder(own);
  if (!recorder) {
    fputs("probe_bench: name a folder in AIMASTER_C4D_DIR, with its whole path\n", stderr);
    return 2;
  }
  const uint64_t begin_ns = NowNs(), begin = Counter();
  while (NowNs() - begin_ns < 100000000) continue;
  the_ns_per_count = (double)(NowNs() - begin_ns) / (double)(Counter() - begin);
  for (int i = 0; i < kTimes; ++i) {
    const uint64_t at = Counter();
    the_times[i] = (uint32_t)(Counter() - at);
  }
  qsort(the_times, kTimes, sizeof *the_times, Compare);
  the_counter_ns = the_times[kTimes / 2] * the_ns_per_count;

  uint32_t members[1024];
  for (uint32_t i = 0; i < 1024; ++i) members[i] = i;
  const uint32_t world = RecorderAddCommunicator(recorder, 1, "MPI_COMM_WORLD", members, 1024, 0);
  const struct RecorderOperation collective = {.communicator = world,
                                               .peer = RECORD_NONE,
                                               .bytes = 4096,
                                               .flags = kRecordBlocking,
                                               .name = 0,
                                               .function = kRecordAllReduce,
                                               .type = kRecordFloat32};
  const struct RecorderOperation message = {.communicator = world,
                                            .peer = 3,
                                            .bytes = 4096,
                                            .flags = kRecordPointToPoint,
                                            .name = 1,
                                            .function = kRecordReceive,
                                            .type = kRecordFloat32};
  volatile uint64_t sink = 0;
  printf("the processor's counter, twice: %.1f ns, taken off all others\n", the_counter_ns);
  MEASURE("the clock", sink += NowNs());
  MEASURE("a blocking collective, begun and ended", RecorderEnd(recorder, RecorderBegin(recorder, &collective)));
  MEASURE("a message that does not block, begun and ended", RecorderEnd(recorder, RecorderBegin(recorder, &message)));
  RecorderTicket open[300];
  for (int i = 0; i < 300; ++i) open[i] = RecorderBegin(recorder, &message);
  MEASURE("a collective beside 300 open messages", RecorderEnd(recorder, RecorderBegin(recorder, &collective)));
  for (int i = 0; i < 300; ++i) RecorderEnd(recorder, open[i]);
  return 0;
}
