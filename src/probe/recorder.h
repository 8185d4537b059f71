// Recorder: writes the record (record.h) of this process. It is a guest in somebody else's program: it never waits,
// takes no lock, and where something is issued or completed it neither allocates nor calls the system. What it has no
// place for it counts and lets go. When it can't do its work, it is off, and every function here returns at once.
//
// A child that is forked inherits no recorder: the recorder's own memory is wiped at a fork, so that a child can't
// write into its parent's file, whichever way it was made.
//
// Any thread may call any function at any time, but for RecorderOpen. Orders are relaxed but for what is said to be
// there after it has been written: the record's checks tell what is whole.
#ifndef AIMASTER_PROBE_RECORDER_H_
#define AIMASTER_PROBE_RECORDER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probe/record.h"

#ifdef __cplusplus
extern "C" {
#endif

struct Recorder;

// Creates the file of this process in the folder named by AIMASTER_C4D_DIR. `names` are those of the source's
// functions, by which operations name theirs. NULL: the folder is not named, or something is wrong: nothing is
// recorded.
struct Recorder* RecorderOpen(enum RecordSource source, const char* const* names, uint32_t name_count);
// The process is done with communication. The file stays.
void RecorderFinish(struct Recorder* recorder);

void RecorderSetWorld(struct Recorder* recorder, uint32_t rank, uint32_t size);

// The place of a communicator, or RECORD_NONE: there was none. `id` 0: it is not known. `members` are world ranks, by
// rank in the communicator; NULL: the source does not tell them. `size` 0: nor how many there are.
uint32_t RecorderAddCommunicator(struct Recorder* recorder, uint64_t id, const char* name, const uint32_t* members,
                                 uint32_t size, uint32_t own_rank);
void RecorderNameCommunicator(struct Recorder* recorder, uint32_t place, const char* name);
void RecorderRetireCommunicator(struct Recorder* recorder, uint32_t place);

struct RecorderOperation {
  uint32_t communicator;  // its place; RECORD_NONE: it is recorded that the process is somewhere, and no more
  uint32_t peer;          // or root: a rank in the communicator, or RECORD_NONE
  uint64_t bytes;
  uint32_t flags;    // RecordOperationFlag
  uint16_t name;     // in the names
  uint8_t function;  // RecordFunction
  uint8_t type;      // RecordType
  bool is_unlisted;  // it takes no place among the open ones
};

// Stands for an operation that was begun, until it is ended; once each. It may be ended on another thread.
typedef uint32_t RecorderTicket;
#define RECORDER_NO_TICKET UINT32_MAX

// Soon this thread will begin one on this communicator: what another processor had last is fetched meanwhile.
void RecorderPrepare(struct Recorder* recorder, uint32_t communicator);
RecorderTicket RecorderBegin(struct Recorder* recorder, const struct RecorderOperation* operation);
// The device has begun with it; or, of MPI, the program has asked for its end.
void RecorderStart(struct Recorder* recorder, RecorderTicket ticket);
void RecorderEnd(struct Recorder* recorder, RecorderTicket ticket);

// The thread is in a call that is no operation, as one that waits for the ends of others. A blocking operation says
// this by itself.
void RecorderEnter(struct Recorder* recorder, uint16_t name);
void RecorderLeave(struct Recorder* recorder);

// The counters of collectives, for sources that learn of starts or of progress apart from operations.
void RecorderCountStart(struct Recorder* recorder, uint32_t communicator, uint64_t started);
void RecorderSetProgress(struct Recorder* recorder, uint32_t communicator, uint64_t progress);

// Something whose end nobody will tell.
void RecorderForget(struct Recorder* recorder, RecorderTicket ticket);

// A ticket that has a place among the open operations has its number, below kRecordOperations; others have none.
static inline bool RecorderHasPlace(RecorderTicket ticket) { return ticket < kRecordOperations; }

#ifdef __cplusplus
}
#endif

#endif  // AIMASTER_PROBE_RECORDER_H_
