// The profiler interface of NCCL, versions 2 to 6, as bytes: what NCCL looks up in a library and what it hands to it.
// Written from a description of the layouts, for 64-bit machines. NCCL itself has no stable header for it: each
// release has the newest version only, and a library that wants to be loaded by several of them has all by itself.
//
//   version  NCCL           type of event  what of a communicator is told, and when
//   2        2.24, 2.25     1 byte         hash and name with each operation
//   3        2.26           1 byte         the same
//   4        2.27           1 byte         all, at its beginning
//   5        2.28           8 bytes        the same, in another order
//   6        2.29, 2.30     8 bytes        as 5; its additional events are not asked for
//
// NCCL asks for the newest version that it knows first, and takes the first one that is there.
#ifndef AIMASTER_PROBE_NCCL_ABI_H_
#define AIMASTER_PROBE_NCCL_ABI_H_

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

// The kinds of events that are asked for. Each asks for those above it as well, which are more in later versions.
enum NcclEvent {
  kNcclGroup = 1,  // what is launched together
  kNcclColl = 2,
  kNcclP2p = 4,
  kNcclKernelCh = 64,   // the device is in an operation, on one of its channels; since version 3
  kNcclGroupApi = 256,  // the program's call, before anything is launched; since version 5
};

#define NCCL_EVENT(Type)                                                         \
  Type type;                                                                     \
  void* parent; /* what was given for its beginning; NULL where that was NULL */ \
  int rank      /* in the communicator */

struct NcclEventV2 {
  NCCL_EVENT(uint8_t);
  union {
    struct {
      const char* name;
      uint64_t communicator_hash, sequence;
      const char* function;
      const void* send;
      void* receive;
      size_t count;
      int root;
      const char* type;
      size_t bytes;
      uint8_t channels_max, warps;
      const char *algorithm, *protocol;
    } coll;
    struct {
      const char* name;
      uint64_t communicator_hash;
      const char* function;
      void* buffer;
      const char* type;
      size_t count;
      int peer;
    } p2p;
  };
};

struct NcclEventV3 {
  NCCL_EVENT(uint8_t);
  union {
    struct {
      const char* name;
      uint64_t communicator_hash, sequence;
      const char* function;
      const void* send;
      void* receive;
      size_t count;
      int root;
      const char* type;
      uint8_t channels_max, warps;
      const char *algorithm, *protocol;
    } coll;
    struct {
      const char* name;
      uint64_t communicator_hash;
      const char* function;
      void* buffer;
      const char* type;
      size_t count;
      int peer;
    } p2p;
  };
};

struct NcclEventV4 {
  NCCL_EVENT(uint8_t);
  union {
    struct {
      uint64_t sequence;
      const char* function;
      const void* send;
      void* receive;
      size_t count;
      int root;
      const char* type;
      uint8_t channels, warps;
      const char *algorithm, *protocol;
    } coll;
    struct {
      const char* function;
      void* buffer;
      const char* type;
      size_t count;
      int peer;
      uint8_t channels;
    } p2p;
  };
};

// Of version 6 too.
struct NcclEventV5 {
  NCCL_EVENT(uint64_t);
  union {
    struct {
      uint64_t sequence;
      const char* function;
      const void* send;
      void* receive;
      size_t count;
      int root;
      const char* type;
      uint8_t channels, warps;
      const char *algorithm, *protocol;
      void* parent_group;
    } coll;
    struct {
      const char* function;
      void* buffer;
      const char* type;
      size_t count;
      int peer;
      uint8_t channels;
      void* parent_group;
    } p2p;
  };
};

static_assert(sizeof(struct NcclEventV2) == 128 && offsetof(struct NcclEventV2, coll.function) == 48 &&
                  offsetof(struct NcclEventV2, coll.type) == 88 && offsetof(struct NcclEventV2, coll.protocol) == 120 &&
                  offsetof(struct NcclEventV2, p2p.peer) == 72,
              "version 2");
static_assert(sizeof(struct NcclEventV3) == 120 && offsetof(struct NcclEventV3, coll.type) == 88 &&
                  offsetof(struct NcclEventV3, coll.channels_max) == 96 && offsetof(struct NcclEventV3, p2p.peer) == 72,
              "version 3");
static_assert(sizeof(struct NcclEventV4) == 104 && offsetof(struct NcclEventV4, coll.type) == 72 &&
                  offsetof(struct NcclEventV4, coll.channels) == 80 && offsetof(struct NcclEventV4, p2p.peer) == 56,
              "version 4");
static_assert(sizeof(struct NcclEventV5) == 112 && offsetof(struct NcclEventV5, coll.parent_group) == 104 &&
                  offsetof(struct NcclEventV5, coll.channels) == 80 &&
                  offsetof(struct NcclEventV5, p2p.parent_group) == 64,
              "versions 5 and 6");

// How a library may write into NCCL's log. It is not called: whose log that is does not want to read of us.
typedef void (*NcclLog)(int level, unsigned long flags, const char* file, int line, const char* format, ...);

// What is exported, under the name ncclProfiler_v2 and so on. All functions return 0 for success.
#define NCCL_PROFILER(Version, Event, ...)                                 \
  struct NcclProfilerV##Version {                                          \
    const char* name;                                                      \
    int (*init)(void** context, __VA_ARGS__);                              \
    int (*start_event)(void* context, void** handle, struct Event* event); \
    int (*stop_event)(void* handle);                                       \
    int (*record_event_state)(void* handle, int state, void* arguments);   \
    int (*finalize)(void* context);                                        \
  };                                                                       \
  static_assert(sizeof(struct NcclProfilerV##Version) == 48, "six words")

NCCL_PROFILER(2, NcclEventV2, int* mask);
NCCL_PROFILER(3, NcclEventV3, int* mask);
NCCL_PROFILER(4, NcclEventV4, int* mask, const char* name, uint64_t hash, int nodes, int ranks, int rank, NcclLog log);
NCCL_PROFILER(5, NcclEventV5, uint64_t id, int* mask, const char* name, int nodes, int ranks, int rank, NcclLog log);

#endif  // AIMASTER_PROBE_NCCL_ABI_H_
