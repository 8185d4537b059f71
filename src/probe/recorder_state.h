// What the files of the recorder share: the memory that a fork wipes, and the words of the record.
#ifndef AIMASTER_PROBE_RECORDER_STATE_H_
#define AIMASTER_PROBE_RECORDER_STATE_H_

#include <time.h>

#include "probe/record.h"

// In a mapping of its own that is zero in a child: there `file` is NULL, and the recorder is off.
struct Recorder {
  unsigned char* file;
  uint64_t next_retired;                         // orders the places by when they were retired
  uint64_t retired_order[kRecordCommunicators];  // of each place that is
};

static inline struct RecordHeader* HeaderOf(const struct Recorder* recorder) {
  return (struct RecordHeader*)recorder->file;
}
static inline struct RecordCommunicator* CommunicatorAt(const struct Recorder* recorder, uint32_t place) {
  return (struct RecordCommunicator*)(recorder->file + kRecordCommunicatorsAt) + place;
}
static inline struct RecordOperation* OperationAt(const struct Recorder* recorder, uint32_t place) {
  return (struct RecordOperation*)(recorder->file + kRecordOperationsAt) + place;
}
static inline struct RecordThread* ThreadAt(const struct Recorder* recorder, uint32_t place) {
  return (struct RecordThread*)(recorder->file + kRecordThreadsAt) + place;
}
static inline struct RecordFinished* RingOf(const struct Recorder* recorder, uint32_t thread) {
  return (struct RecordFinished*)(recorder->file + kRecordRingsAt) + (size_t)thread * kRecordRingLength;
}

#define LOAD(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)
#define STORE(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELAXED)
#define PUBLISH(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELEASE)
#define ADD(word, value) __atomic_fetch_add(&(word), (value), __ATOMIC_RELAXED)

// Fetches a line of memory for this processor alone. The compiler's own would, for x86-64 in general, fetch it for
// reading, so that the first write has to ask for it once more; processors that don't know the instruction pass over
// it.
static inline void FetchForWriting(const void* at) {
#if defined(__x86_64__)
  __asm__ volatile("prefetchw %0" : : "m"(*(const char*)at));
#else
  __builtin_prefetch(at, 1);
#endif
}

// Through the vDSO: no system call. The processor's own counter would take half of its 20 ns, and would have to be
// compared with this clock again and again, on machines whose counters stop or differ.
static inline uint64_t NowNs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif  // AIMASTER_PROBE_RECORDER_STATE_H_
