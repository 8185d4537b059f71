// What the profiler plugin costs a thread that calls NCCL, for one collective: all that NCCL 2.29 tells it of that on
// the thread that calls, which is six calls. And what the thread of NCCL pays that looks at the device's counters. Of
// each the median and the worst of a thousand, on one processor alone.
//
// A look at the clock is a quarter of it or more; bench/probe_bench.c prints that.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "probe/nccl/abi.h"

enum { kTimes = 1000000, kChannels = 8, kBehind = 64, kGroupApi = 256, kCollApi = 512 };
static uint32_t the_times[kTimes];
static double the_ns_per_count, the_counter_ns;
static struct NcclProfilerV5* the_profiler;
static void* the_context;

static uint64_t NowNs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

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

static void Print(const char* what) {
  qsort(the_times, kTimes, sizeof *the_times, Compare);
  const double p50 = the_times[kTimes / 2] * the_ns_per_count - the_counter_ns;
  const double p999 = the_times[kTimes - kTimes / 1000] * the_ns_per_count - the_counter_ns;
  printf("%-56s p50 %6.1f ns   p99.9 %7.1f ns\n", what, p50, p999);
}

static void Calibrate(void) {
  const uint64_t begin_ns = NowNs(), begin = Counter();
  while (NowNs() - begin_ns < 100000000) continue;
  the_ns_per_count = (double)(NowNs() - begin_ns) / (double)(Counter() - begin);
  for (int i = 0; i < kTimes; ++i) {
    const uint64_t at = Counter();
    the_times[i] = (uint32_t)(Counter() - at);
  }
  qsort(the_times, kTimes, sizeof *the_times, Compare);
  the_counter_ns = the_times[kTimes / 2] * the_ns_per_count;
}

static void* Start(struct NcclEventV5* event) {
  void* handle;
  the_profiler->start_event(the_context, &handle, event);
  return handle;
}

// The descriptors are NCCL's to fill in, with a profiler or without.
static struct NcclEventV5 the_group_api = {.type = kGroupApi}, the_coll_api = {.type = kCollApi},
                          the_group = {.type = kNcclGroup}, the_collective = {.type = kNcclColl};

static void BeginCall(void) {
  Start(&the_group_api);
  Start(&the_coll_api);
}

static void* Launch(void) {
  Start(&the_group);
  void* handle = Start(&the_collective);
  the_profiler->stop_event(handle);
  return handle;
}

static void* Call(void) {
  BeginCall();
  return Launch();
}

static void RunOnDevice(void* operation) {
  void* channels[kChannels];
  struct NcclEventV5 event = {.type = kNcclKernelCh, .parent = operation};
  for (int i = 0; i < kChannels; ++i) channels[i] = Start(&event);
  uint64_t time = 0;
  for (int i = 0; i < kChannels; ++i) {
    the_profiler->record_event_state(channels[i], 22, &time);
    the_profiler->stop_event(channels[i]);
  }
}

#define MEASURE(what, before, ...)                  \
  do {                                              \
    for (int i = 0; i < kTimes; ++i) {              \
      before;                                       \
      const uint64_t begin = Counter();             \
      __VA_ARGS__;                                  \
      the_times[i] = (uint32_t)(Counter() - begin); \
    }                                               \
    Print(what);                                    \
  } while (0)

// Operations on their way from the thread that calls to the one that looks at the device.
static void* the_ring[kBehind];
static uint64_t the_called, the_done, the_end;

static void Pin(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  sched_setaffinity(0, sizeof set, &set);
}

static void* LookAtDevice(void* processor) {
  Pin((int)(intptr_t)processor);
  for (uint64_t done = 0; !__atomic_load_n(&the_end, __ATOMIC_ACQUIRE);) {
    if (done == __atomic_load_n(&the_called, __ATOMIC_ACQUIRE)) continue;
    RunOnDevice(the_ring[done % kBehind]);
    __atomic_store_n(&the_done, ++done, __ATOMIC_RELEASE);
  }
  return NULL;
}

static void Pause(uint64_t ns) {
  for (const uint64_t begin = NowNs(); NowNs() - begin < ns;) continue;
}

static void HandOver(void* handle) {
  while (the_called - __atomic_load_n(&the_done, __ATOMIC_ACQUIRE) >= kBehind) continue;
  the_ring[the_called % kBehind] = handle;
  __atomic_store_n(&the_called, the_called + 1, __ATOMIC_RELEASE);
}

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

static int Load(void) {
  const char* programs = getenv("AIMASTER_BIN");
  char path[4096];
  snprintf(path, sizeof path, "%s/libnccl-profiler-aimaster.so", programs ? programs : "build/bin");
  void* library = dlopen(path, RTLD_NOW);
  if (library) the_profiler = dlsym(library, "ncclProfiler_v6");
  if (the_profiler) return 0;
  fprintf(stderr, "nccl_bench: %s: name the folder of the programs in AIMASTER_BIN\n", library ? path : dlerror());
  return 2;
}

int main(void) {
  if (Load() != 0) return 2;
  char own[] = "/dev/shm/nccl_bench-XXXXXX";
  if (!mkdtemp(own)) return 2;
  setenv("AIMASTER_C4D_DIR", own, 1);
  Pin(0);
  Calibrate();
  int mask = 0;
  the_profiler->init(&the_context, 77, &mask, "world", 128, 1024, 3, NULL);
  RemoveFolder(own);
  if (!the_context) return 2;
  the_collective.coll.function = "ReduceScatter";
  the_collective.coll.type = "ncclFloat32";
  the_collective.coll.count = 4096;
  the_collective.coll.channels = kChannels;

  printf("the processor's counter, twice: %.1f ns, taken off all others\n", the_counter_ns);
  void* handle = Call();
  MEASURE("a collective, on the thread that calls", RunOnDevice(handle), handle = Call());
  MEASURE("a collective of 8 channels, on NCCL's own thread", handle = Call(), RunOnDevice(handle));
  RunOnDevice(handle);
  const int processors = (int)sysconf(_SC_NPROCESSORS_ONLN);
  if (processors < 2) return 0;
  pthread_t thread;
  pthread_create(&thread, NULL, LookAtDevice, (void*)(intptr_t)1);
  handle = Call();
  MEASURE("the same without a pause, NCCL's thread beside it", HandOver(handle), handle = Call());
  HandOver(handle);
  // As in a program: NCCL takes some microseconds from the call to the launch, and they do not follow at once.
  for (int i = 0; i < kTimes; ++i) {
    Pause(5000);
    const uint64_t call = Counter();
    BeginCall();
    const uint64_t called = Counter();
    Pause(2000);
    const uint64_t launch = Counter();
    handle = Launch();
    the_times[i] = (uint32_t)(Counter() - launch + called - call - (uint64_t)(the_counter_ns / the_ns_per_count));
    HandOver(handle);
  }
  Print("the same with pauses, NCCL's thread beside it");
  __atomic_store_n(&the_end, 1, __ATOMIC_RELEASE);
  pthread_join(thread, NULL);
  return 0;
}
