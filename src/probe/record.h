// The record: a file in shared memory into which a process under a probe writes what it communicates, while others read
// it. One process writes one file; the folder is named by AIMASTER_C4D_DIR, and without that nothing is written.
//
// Think of a clerk's open book on a counter: whoever passes may take a photograph at any moment, and the clerk never
// looks up. A socket to the reader was the alternative: a reader that is slow would have to be waited for, or be sent a
// system call for each operation.
//
//   byte 0  ┌──────────────────────────────────────────────┐
//           │ RecordHeader                       512 bytes │  who writes; what of it is where; what was lost
//           ├──────────────────────────────────────────────┤
//           │ function names               256 × 32 bytes  │  "MPI_Allreduce"; operations name them by their index
//           ├──────────────────────────────────────────────┤
//           │ RecordCommunicator          256 × 896 bytes  │  members, counters
//           ├──────────────────────────────────────────────┤
//           │ RecordOperation              512 × 64 bytes  │  issued and not completed: the current operations of all
//           ├──────────────────────────────────────────────┤
//           │ RecordThread                   8 × 64 bytes  │  where each thread is, and how far its ring is
//           ├──────────────────────────────────────────────┤
//           │ RecordFinished         8 × 512 × 64 bytes    │  a ring for each thread: what it completed last
//           └──────────────────────────────────────────────┘
//
// All numbers are in the machine's own order and all times are monotonic nanoseconds: a file never leaves its machine.
// Its process holds a lock on it (fcntl, F_WRLCK) for as long as it lives: who finds none looks at what the dead have
// left. It is created with O_EXCL and mode 0600, has its full size from the beginning, and its blocks are reserved, so
// that writing into it can't fail. The folder is best one in memory: while a disk writes a page back, who writes to
// that page may have to wait.
//
// Reading. A copy is made of it in whichever order the copying program likes, once. A sequence number before and after
// a slot would show a torn one only to who reads in the right order, and looks twice. So each slot carries a check over
// its words instead; a slot whose check is wrong was being written, is left out and counted. The counters of a
// communicator are single words, each right by itself.
//
// States
//   file           all zero ─▶ opened (magic is written last) ─▶ finished; a process that is killed leaves it opened
//   communicator   unused ─▶ used ─▶ retired ─▶ used …: freed by the program; counters stay until the place is needed,
//                  since other members may still be in its last operation
//   operation      free ─▶ being written ─▶ open ─▶ free …
//   thread         unused (owner 0) ─▶ owned, by the thread's id ─▶ owned by another, when the first is gone
//   ring slot n    holds the last of those whose ordinal is n + 1 modulo the ring's length
//
// Promise: version 1 never changes the meaning of a field. What is reserved is 0 and may get a meaning whose absence is
// 0; the header's sizes and places tell how many there are of what, and a reader uses those. Anything else takes a new
// version, and a reader refuses versions that it does not know.
#ifndef AIMASTER_PROBE_RECORD_H_
#define AIMASTER_PROBE_RECORD_H_

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define AIMASTER_RECORD_MAGIC "AIMC4DR"  // and a NUL
#define AIMASTER_RECORD_FOLDER "AIMASTER_C4D_DIR"
#define AIMASTER_RECORD_SUFFIX ".c4d"

enum {
  kRecordVersion = 1,
  kRecordFunctionNames = 256,
  kRecordFunctionNameBytes = 32,  // with a NUL
  kRecordCommunicators = 256,
  kRecordNameBytes = 64,  // of a communicator, with a NUL
  kRecordMemberWords = 160,
  kRecordOperations = 512,
  kRecordThreads = 8,
  kRecordRingLength = 512,
};

#define RECORD_NONE UINT32_MAX  // of a rank, a peer, an index: there is none, or it is not known

enum RecordSource { kRecordMpi = 1, kRecordNccl = 2, kRecordTorch = 3 };

enum RecordFileState { kRecordOpened = 1, kRecordFinished = 2 };

// What an operation does; its name says how the source calls it.
enum RecordFunction {
  kRecordOtherCollective = 0,
  kRecordAllReduce = 1,
  kRecordAllGather = 2,
  kRecordReduceScatter = 3,
  kRecordBroadcast = 4,
  kRecordReduce = 5,
  kRecordAllToAll = 6,
  kRecordGather = 7,
  kRecordScatter = 8,
  kRecordScan = 9,
  kRecordBarrier = 10,
  kRecordSend = 11,
  kRecordReceive = 12,
};

// Of the elements. Other: a type that the program made, or that is not told.
enum RecordType {
  kRecordOtherType = 0,
  kRecordByte,
  kRecordBool,
  kRecordInt8,
  kRecordUint8,
  kRecordInt16,
  kRecordUint16,
  kRecordInt32,
  kRecordUint32,
  kRecordInt64,
  kRecordUint64,
  kRecordFloat16,
  kRecordBFloat16,
  kRecordFloat32,
  kRecordFloat64,
  kRecordLongDouble,
  kRecordComplex64,
  kRecordComplex128,
  kRecordFloat8E4M3,
  kRecordFloat8E5M2,
  kRecordPair,  // of a value and its place
  kRecordTypes,
};

enum RecordOperationFlag {
  kRecordPointToPoint = 1,
  kRecordBlocking = 2,    // the program is in it until it has completed
  kRecordSizeVaries = 4,  // members may give different counts
  kRecordUncounted = 8,   // it looks for a message and takes none: in no counter, and has no sequence number
};

// 512 bytes; each line is one of the processor's, so that who counts does not disturb who only reads.
struct RecordHeader {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  uint64_t file_bytes;
  uint32_t source;      // RecordSource
  uint32_t state;       // RecordFileState
  uint64_t pid;         // as the process sees itself
  uint32_t world_rank;  // RECORD_NONE until the source has told
  uint32_t world_size;  // 0 until then
  uint64_t created_monotonic_ns;
  uint64_t created_wall_ns;

  // Places in bytes from the beginning of the file, and how many there are.
  uint32_t function_names_at;
  uint32_t function_names;
  uint32_t communicators_at;
  uint32_t communicators;
  uint32_t operations_at;
  uint32_t operations;
  uint32_t threads_at;
  uint32_t threads;
  uint32_t rings_at;
  uint32_t ring_length;
  uint64_t reserved_1[3];

  // What there was no place for. Each only grows.
  uint64_t communicators_dropped;
  uint64_t operations_dropped;  // issued without a place among the open ones: counted in their communicator alone
  uint64_t finished_dropped;    // completed by a thread without a ring
  uint64_t threads_dropped;
  uint64_t members_dropped;   // communicators whose members are too many and too scattered
  uint64_t requests_dropped;  // operations whose end will not be seen: they count as completed when they were issued
  uint64_t reserved_2[2];

  // Operations of which nothing is recorded but that the process is in them: on a communicator without a place, or of a
  // kind that has none here, as files and windows.
  uint64_t elsewhere_begun;
  uint64_t elsewhere_ended;
  uint64_t elsewhere_changed_ns;
  uint64_t reserved_3[5];

  // Threads without a place that are in a call.
  uint64_t others_entered;
  uint64_t others_left;
  uint64_t reserved_4[30];
};

enum RecordCommunicatorState { kRecordUnused = 0, kRecordUsed = 1, kRecordRetired = 2 };
enum RecordCommunicatorFlag { kRecordSizeLeast = 1 };  // it has at least so many members: the size is not told
enum RecordMembers {
  kRecordMembersUnknown = 0,  // too many and too scattered, or the source does not tell them
  kRecordMembersListed = 1,   // members[i] is the world rank of rank i
  kRecordMembersRuns = 2,     // three words each: first, step (signed), count; in the order of their ranks
};

// 896 bytes. The words before the counters are what the check is over; they change only when it is made or named.
struct RecordCommunicator {
  uint64_t check;
  uint32_t state;       // RecordCommunicatorState
  uint32_t generation;  // of this place; the operations' reference holds its lower bits
  uint64_t id;          // the same on all members, and of no other communicator of the job; 0: not known
  uint32_t size;
  uint32_t rank;          // of this process in it
  uint32_t members_kind;  // RecordMembers
  uint32_t member_words;  // that are used
  uint64_t created_ns;
  uint64_t flags;  // RecordCommunicatorFlag
  uint64_t reserved_1;
  char name[kRecordNameBytes];  // empty: it has none
  uint32_t members[kRecordMemberWords];

  // Collectives, and when each number went up last; 0: never. `started` only where the source tells starts.
  uint64_t issued;
  uint64_t started;
  uint64_t completed;
  uint64_t issued_ns;
  uint64_t started_ns;
  uint64_t completed_ns;
  uint64_t progress;  // of the transport within the current operation
  uint64_t reserved_2;

  // From rank to rank.
  uint64_t common_issued;
  uint64_t common_completed;
  uint64_t common_issued_ns;
  uint64_t common_completed_ns;
  uint64_t reserved_3[4];
};

enum RecordOperationState { kRecordFree = 0, kRecordBeingWritten = 1, kRecordOpen = 2 };

// A communicator as operations name it: its place, and the generation of that in the upper 16 bits.
#define RECORD_REFERENCE(place, generation) ((uint32_t)(place) | (uint32_t)(generation) << 16)

// 64 bytes. The check is over the words from `state` to `issued_ns`.
struct RecordOperation {
  uint64_t check;
  uint64_t state;         // RecordOperationState in the lower 2 bits; above them how often the place was used
  uint32_t communicator;  // RECORD_REFERENCE
  uint32_t peer;          // or the root: a rank in the communicator, or RECORD_NONE
  uint64_t sequence;      // its number in the communicator, from 1; point-to-point: among those
  uint64_t bytes;         // that this rank gives, or takes
  uint16_t name;          // in the function names
  uint8_t function;       // RecordFunction
  uint8_t type;           // RecordType
  uint32_t flags;         // RecordOperationFlag
  uint64_t issued_ns;
  // Outside of the check, since it changes. When the device began with it; of MPI, when the program first asked for its
  // end, for what it has not asked for does not hold it up. 0: not yet.
  uint64_t started_ns;
};

// 64 bytes.
struct RecordThread {
  uint64_t owner;   // the thread's id; 0: nobody
  uint32_t inside;  // in the function names, plus 1: the call that it is in; 0: in none
  uint32_t reserved_1;
  uint64_t changed_ns;  // when it last entered or left a call
  uint64_t finished;    // operations that went into the ring
  uint64_t reserved_2[4];
};

// 64 bytes. The check is over all words after it.
struct RecordFinished {
  uint64_t check;
  uint64_t ordinal;  // in the ring, from 1; 0: nothing yet
  uint32_t communicator;
  uint32_t peer;
  uint64_t sequence;
  uint64_t bytes;
  uint16_t name;
  uint8_t function;
  uint8_t type;
  uint32_t flags;
  uint64_t issued_ns;
  // Until it was known to have completed: since the device began with it, of MPI since the program asked for its end;
  // where no start is told, since it was issued.
  uint64_t duration_ns;
};

enum {
  kRecordFunctionNamesAt = 512,
  kRecordCommunicatorsAt = kRecordFunctionNamesAt + kRecordFunctionNames * kRecordFunctionNameBytes,
  kRecordOperationsAt = kRecordCommunicatorsAt + kRecordCommunicators * 896,
  kRecordThreadsAt = kRecordOperationsAt + kRecordOperations * 64,
  kRecordRingsAt = kRecordThreadsAt + kRecordThreads * 64,
  kRecordFileBytes = kRecordRingsAt + kRecordThreads * kRecordRingLength * 64,
  kRecordOperationCheckWords = 6,
  kRecordFinishedCheckWords = 7,
  kRecordCommunicatorCheckWords = (8 * 8 - 8 + kRecordNameBytes + kRecordMemberWords * 4) / 8,
};

static_assert(sizeof(struct RecordHeader) == 512 && sizeof(struct RecordCommunicator) == 896 &&
                  sizeof(struct RecordOperation) == 64 && sizeof(struct RecordThread) == 64 &&
                  sizeof(struct RecordFinished) == 64,
              "the record has fixed sizes");
static_assert(offsetof(struct RecordHeader, function_names_at) == 64 &&
                  offsetof(struct RecordHeader, communicators_dropped) == 128 &&
                  offsetof(struct RecordHeader, elsewhere_begun) == 192 &&
                  offsetof(struct RecordHeader, others_entered) == 256 &&
                  offsetof(struct RecordCommunicator, name) == 64 &&
                  offsetof(struct RecordCommunicator, members) == 128 &&
                  offsetof(struct RecordCommunicator, issued) == 768 &&
                  offsetof(struct RecordCommunicator, common_issued) == 832 &&
                  offsetof(struct RecordOperation, started_ns) == 56 &&
                  offsetof(struct RecordFinished, duration_ns) == 56,
              "the record has fixed places");
static_assert(kRecordCommunicators <= 65536, "a reference has 16 bits for the place");
static_assert((kRecordRingLength & (kRecordRingLength - 1)) == 0, "slots are found by a mask");

// The check over words: a sum of each times a number of its own. It is there to notice words of two different
// operations in one slot, not to keep out somebody who means it, and its products do not wait for each other.
static inline uint64_t RecordCheck(const uint64_t* words, size_t count) {
  uint64_t sum = UINT64_C(0x632be59bd9b4e019), factor = UINT64_C(0x9e3779b97f4a7c15);
  for (size_t i = 0; i < count; ++i, factor += UINT64_C(0xd1b54a32d192ed02)) sum += words[i] * factor;
  return sum;
}

#endif  // AIMASTER_PROBE_RECORD_H_
