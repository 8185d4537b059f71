// What the files of the NCCL library share: its communicators, each with a ring of its operations.
#ifndef AIMASTER_PROBE_NCCL_STATE_H_
#define AIMASTER_PROBE_NCCL_STATE_H_

#include "probe/recorder.h"
#include "probe/recorder_state.h"

enum {
  kCommunicators = kRecordCommunicators,
  kOperations = 1024,  // of a communicator, that have not ended
  kMessages = 768,     // of those from rank to rank: a plan may have thousands, and a collective must find room
  kListed = 128,       // of a communicator, in the record
  kListedMessages = 96,
  kPlansQueued = 1000,  // no device queues more launches: what is further back has been done
};
static_assert((kOperations & (kOperations - 1)) == 0, "places are found by a mask");

enum OperationState { kStarted = 1, kEnded = 2 };

struct __attribute__((aligned(32))) Operation {
  uint64_t number;  // of its communicator, from 1; 0: it is being written
  RecorderTicket ticket;
  uint32_t plan;
  uint32_t channels;   // that have begun; in the upper half that have ended
  uint16_t announced;  // channels; 0: not told exactly
  uint8_t state;       // OperationState
  bool is_common;
};

// Of those that announce channels, whether as many are heard of.
enum Hearing { kHearsUnknown = 0, kHearsAll = 1, kHearsFewer = 2 };

enum CommunicatorState { kUnused = 0, kBeingMade = 1, kUsed = 2 };

// Places in the record, beside those that are.
#define PLACE_UNTOLD (RECORD_NONE - 1)  // its first operation will tell of it

// Who issues and who hears of channels run on different processors. So each has lines of its own, and looks into the
// other's only when it must: a line that goes from one to the other costs as much as all else that is done.
#define LINE __attribute__((aligned(64)))
struct Communicator {
  uint32_t state;  // CommunicatorState
  uint32_t generation;
  uint32_t place;  // in the record; RECORD_NONE: it has none there
  bool tells_channels;

  // Of who issues.
  LINE uint64_t last;   // number of the operation that was issued last
  uint64_t first_seen;  // `first`, some time ago
  uint32_t plan;        // that is being issued
  bool is_plan_issued;  // what comes is of the next one
  uint32_t listed;      // in the record
  uint32_t unlisted_seen;

  // Of who hears.
  LINE uint64_t first;    // number of the oldest that has not ended
  uint64_t started;       // collectives
  uint32_t started_plan;  // the last of which anything has begun
  uint32_t unlisted;      // of those that were listed
  uint32_t hearing;       // Hearing

  LINE struct Operation operations[kOperations];
};

extern struct Recorder* the_recorder;  // NULL: nothing is recorded
extern struct Communicator the_communicators[kCommunicators];

// Handles: what they stand for in the lower two bits, then the communicator's place, then its generation or the
// operation's number. Never 0.
enum HandleKind { kContext = 1, kOperation = 2, kChannel = 3 };
enum { kHandleShift = 16 };
static_assert(kCommunicators <= 1 << (kHandleShift - 2), "a handle has room for the communicator");

static inline void* MakeHandle(enum HandleKind kind, const struct Communicator* communicator, uint64_t number) {
  return (void*)(uintptr_t)(number << kHandleShift | (uint64_t)(communicator - the_communicators) << 2 | kind);
}
static inline enum HandleKind KindOf(const void* handle) { return (enum HandleKind)((uintptr_t)handle & 3); }
static inline uint64_t NumberOf(const void* handle) { return (uintptr_t)handle >> kHandleShift; }
static inline struct Communicator* PlaceOf(const void* handle) {
  const uint64_t place = ((uintptr_t)handle >> 2) & ((1 << (kHandleShift - 2)) - 1);
  return place < kCommunicators ? &the_communicators[place] : NULL;
}

static inline struct Operation* OperationOf(struct Communicator* communicator, uint64_t number) {
  return &communicator->operations[number & (kOperations - 1)];
}

// communicators.c: the place in the record of a communicator that its first operation tells of. Another thread that
// comes at the same moment finds none.
struct CommunicatorFacts;
uint32_t LearnPlace(struct Communicator* communicator, const struct CommunicatorFacts* facts);

// operations.c: nobody will tell how they end.
void ForgetOperations(struct Communicator* communicator);

#endif  // AIMASTER_PROBE_NCCL_STATE_H_
