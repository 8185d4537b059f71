#define _GNU_SOURCE
// The record's file: made whole, and named as ready only then.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "probe/recorder.h"
#include "probe/recorder_state.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

// All blocks, so that no write into the mapping ever meets a full disk, which would kill the process.
static bool Reserve(int file) {
  if (fallocate(file, 0, 0, kRecordFileBytes) == 0) return true;
  if (errno != EOPNOTSUPP && errno != ENOSYS) return false;
  static const char zeros[4096];
  for (off_t at = 0; at < kRecordFileBytes; at += (off_t)sizeof zeros) {
    const size_t left = (size_t)(kRecordFileBytes - at);
    const size_t size = left < sizeof zeros ? left : sizeof zeros;
    if (pwrite(file, zeros, size, at) != (ssize_t)size) return false;
  }
  return true;
}

// The folder's memory is the program's too: of a small one we take nothing that it may soon need.
static bool HasRoom(const char* folder) {
  enum { kRoomEnough = 256 << 20 };
  struct statvfs all;
  if (statvfs(folder, &all) != 0) return false;
  const uint64_t size = (uint64_t)all.f_blocks * all.f_frsize, room = (uint64_t)all.f_bavail * all.f_frsize;
  return size == 0 || room >= kRoomEnough || room >= size / 4;  // without a size it has no bound
}

// A sign of life: the system lets go of this lock when the process is gone, and of no other. It is given to no child,
// and the descriptor stays open for it, out of the way of the program's own.
static void LockForLife(int file) {
  const int high = fcntl(file, F_DUPFD_CLOEXEC, 512);
  if (high >= 0) close(file);
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  (void)!fcntl(high >= 0 ? high : file, F_SETLK, &lock);
}

static unsigned char* MapNewFile(const char* folder, enum RecordSource source) {
  static const char* const kSources[] = {"", "mpi", "nccl", "torch"};
  char path[4096];
  // A number of a process may come back; together with the time it names this one.
  const int length = snprintf(path, sizeof path, "%s/%s-%ld-%llx" AIMASTER_RECORD_SUFFIX, folder, kSources[source],
                              (long)getpid(), (unsigned long long)NowNs());
  if (length < 0 || (size_t)length >= sizeof path || !HasRoom(folder)) return NULL;
  const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return NULL;
  void* mapped = MAP_FAILED;
  if (Reserve(file)) mapped = mmap(NULL, kRecordFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
  if (mapped != MAP_FAILED) {
    LockForLife(file);
    return mapped;
  }
  close(file);
  unlink(path);
  return NULL;
}

static struct Recorder* MapState(void) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  const size_t size = (sizeof(struct Recorder) + page - 1) / page * page;
  void* mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return NULL;
  // Linux before 4.14 has no such thing; a child that communicates by itself is rarer than that, and yet: be off.
  if (madvise(mapped, size, MADV_WIPEONFORK) == 0) return mapped;
  munmap(mapped, size);
  return NULL;
}

static void WriteHeader(unsigned char* file, enum RecordSource source, const char* const* names, uint32_t name_count) {
  struct timespec wall;
  clock_gettime(CLOCK_REALTIME, &wall);
  struct RecordHeader* header = (struct RecordHeader*)file;
  *header = (struct RecordHeader){
      .version = kRecordVersion,
      .header_bytes = sizeof *header,
      .file_bytes = kRecordFileBytes,
      .source = source,
      .state = kRecordOpened,
      .pid = (uint64_t)getpid(),
      .world_rank = RECORD_NONE,
      .created_monotonic_ns = NowNs(),
      .created_wall_ns = (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec,
      .function_names_at = kRecordFunctionNamesAt,
      .function_names = kRecordFunctionNames,
      .communicators_at = kRecordCommunicatorsAt,
      .communicators = kRecordCommunicators,
      .operations_at = kRecordOperationsAt,
      .operations = kRecordOperations,
      .threads_at = kRecordThreadsAt,
      .threads = kRecordThreads,
      .rings_at = kRecordRingsAt,
      .ring_length = kRecordRingLength,
  };
  for (uint32_t i = 0; i < name_count && i < kRecordFunctionNames; ++i) {
    char* to = (char*)file + kRecordFunctionNamesAt + i * kRecordFunctionNameBytes;
    strncpy(to, names[i], kRecordFunctionNameBytes - 1);
  }
  uint64_t magic;
  memcpy(&magic, AIMASTER_RECORD_MAGIC, sizeof magic);
  __atomic_store_n((uint64_t*)(void*)header->magic, magic, __ATOMIC_RELEASE);
}

struct Recorder* RecorderOpen(enum RecordSource source, const char* const* names, uint32_t name_count) {
  const char* folder = getenv(AIMASTER_RECORD_FOLDER);
  if (!folder || folder[0] != '/') return NULL;
  const int before = errno;
  struct Recorder* recorder = MapState();
  unsigned char* file = recorder ? MapNewFile(folder, source) : NULL;
  errno = before;
  if (!file) return NULL;
  WriteHeader(file, source, names, name_count);
  recorder->file = file;
  return recorder;
}

void RecorderFinish(struct Recorder* recorder) {
  if (!recorder || !recorder->file) return;
  STORE(HeaderOf(recorder)->state, (uint32_t)kRecordFinished);
}

void RecorderSetWorld(struct Recorder* recorder, uint32_t rank, uint32_t size) {
  if (!recorder || !recorder->file) return;
  STORE(HeaderOf(recorder)->world_size, size);
  STORE(HeaderOf(recorder)->world_rank, rank);
}
