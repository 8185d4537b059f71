// The versions of NCCL's interface, each a thin layer over events.h. What is asked for is the least that tells who
// hangs. Steps of the network are not: they would be many for each operation, and come from other processes too.
#include "probe/nccl/abi.h"
#include "probe/nccl/events.h"

#define EXPORT __attribute__((visibility("default")))

static int Init(void** context, int* mask, const struct CommunicatorFacts* facts) {
  *context = BeginCommunicator(facts);
  // One word for the whole process: who writes it last is heard, so all have to write the same.
  const int channels = facts->tells_channels ? kNcclKernelCh : 0;
  if (*context) *mask = kNcclGroup | kNcclColl | kNcclP2p | channels;
  return 0;
}

static int Stop(void* handle) {
  StopEvent(handle);
  return 0;
}

static int RecordState(void* handle, int state, void* arguments) {
  (void)handle, (void)state, (void)arguments;
  return 0;
}

static int Finalize(void* context) {
  EndCommunicator(context);
  return 0;
}

// Of versions 2 and 3: each operation tells its communicator. Of the channels only a bound is told.
#define START_WITH_COMMUNICATOR(version)                                                                        \
  static int StartV##version(void* context, void** handle, struct NcclEventV##version* event) {                 \
    *handle = NULL;                                                                                             \
    if (event->type == kNcclGroup) {                                                                            \
      BeginPlan(context);                                                                                       \
    } else if (event->type == kNcclColl) {                                                                      \
      const struct OperationFacts facts = {                                                                     \
          .communicator = {.id = event->coll.communicator_hash, .name = event->coll.name, .rank = event->rank}, \
          .function = event->coll.function,                                                                     \
          .type = event->coll.type,                                                                             \
          .count = event->coll.count,                                                                           \
          .peer = event->coll.root};                                                                            \
      *handle = IssueOperation(context, &facts);                                                                \
    } else if (event->type == kNcclP2p) {                                                                       \
      const struct OperationFacts facts = {                                                                     \
          .communicator = {.id = event->p2p.communicator_hash, .name = event->p2p.name, .rank = event->rank},   \
          .function = event->p2p.function,                                                                      \
          .type = event->p2p.type,                                                                              \
          .count = event->p2p.count,                                                                            \
          .peer = event->p2p.peer,                                                                              \
          .is_common = true};                                                                                   \
      *handle = IssueOperation(context, &facts);                                                                \
    } else if (event->type == kNcclKernelCh) {                                                                  \
      *handle = BeginChannel(event->parent);                                                                    \
    }                                                                                                           \
    return 0;                                                                                                   \
  }

// Of versions 4 to 6. How many channels an operation from rank to rank has is not exact, and where a newer NCCL speaks
// version 4 it is not even set.
#define START(version)                                                                          \
  static int StartV##version(void* context, void** handle, struct NcclEventV##version* event) { \
    const uint64_t type = event->type;                                                          \
    *handle = NULL;                                                                             \
    if (type == kNcclGroup) {                                                                   \
      BeginPlan(context);                                                                       \
    } else if (type == kNcclColl) {                                                             \
      const struct OperationFacts facts = {.function = event->coll.function,                    \
                                           .type = event->coll.type,                            \
                                           .count = event->coll.count,                          \
                                           .peer = event->coll.root,                            \
                                           .channels = event->coll.channels};                   \
      *handle = IssueOperation(context, &facts);                                                \
    } else if (type == kNcclP2p) {                                                              \
      const struct OperationFacts facts = {.function = event->p2p.function,                     \
                                           .type = event->p2p.type,                             \
                                           .count = event->p2p.count,                           \
                                           .peer = event->p2p.peer,                             \
                                           .is_common = true};                                  \
      *handle = IssueOperation(context, &facts);                                                \
    } else if (type == kNcclKernelCh) {                                                         \
      *handle = BeginChannel(event->parent);                                                    \
    } else if (type == kNcclGroupApi) {                                                         \
      PrepareIssue(context);                                                                    \
    }                                                                                           \
    return 0;                                                                                   \
  }

START_WITH_COMMUNICATOR(2)
START_WITH_COMMUNICATOR(3)
START(4)
START(5)

static int InitV2(void** context, int* mask) { return Init(context, mask, &(struct CommunicatorFacts){0}); }

static int InitV3(void** context, int* mask) {
  return Init(context, mask, &(struct CommunicatorFacts){.tells_channels = true});
}

static int InitV4(void** context, int* mask, const char* name, uint64_t hash, int nodes, int ranks, int rank,
                  NcclLog log) {
  (void)nodes, (void)log;
  const struct CommunicatorFacts facts = {
      .are_known = true, .tells_channels = true, .id = hash, .name = name, .ranks = ranks, .rank = rank};
  return Init(context, mask, &facts);
}

static int InitV5(void** context, uint64_t id, int* mask, const char* name, int nodes, int ranks, int rank,
                  NcclLog log) {
  return InitV4(context, mask, name, id, nodes, ranks, rank, log);
}

#define NAME "AIMaster"
EXPORT struct NcclProfilerV2 ncclProfiler_v2 = {NAME, InitV2, StartV2, Stop, RecordState, Finalize};
EXPORT struct NcclProfilerV3 ncclProfiler_v3 = {NAME, InitV3, StartV3, Stop, RecordState, Finalize};
EXPORT struct NcclProfilerV4 ncclProfiler_v4 = {NAME, InitV4, StartV4, Stop, RecordState, Finalize};
EXPORT struct NcclProfilerV5 ncclProfiler_v5 = {NAME, InitV5, StartV5, Stop, RecordState, Finalize};
EXPORT struct NcclProfilerV5 ncclProfiler_v6 = {NAME, InitV5, StartV5, Stop, RecordState, Finalize};
