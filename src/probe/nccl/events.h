// What NCCL tells, whichever version of its interface it speaks. versions.c translates into this; what is behind it
// writes the record.
//
// NCCL tells of an operation in two places. The thread that calls it, or one of CUDA's where a graph is launched, says
// that it is enqueued; that is all that "stop" means there. Later a thread of NCCL's own, which looks at counters that
// the device writes, says for each channel when the device has begun and ended it:
//
//   plan ──▶ operation issued ──▶ enqueued           first channel begins ──▶ … ──▶ last channel ends
//            └ RecorderBegin                         └ RecorderStart                └ RecorderEnd
//
// So who has issued and not begun has a device that is elsewhere, and who has begun and not ended is in it.
//
// When it has ended. Of a collective it is told how many channels it has; but versions 2 and 3 tell a bound alone, and
// of operations from rank to rank channels with nothing to do are counted and never heard of. So there it has ended
// when all channels that have begun have ended; and of collectives too, until one of the communicator has shown that as
// many are heard of as are announced, and again once fewer were. To wait for the number in any case was rejected: where
// one channel is never heard of, a job that pauses after that operation would look as if it hung.
//
// And a communicator's kernels follow each other on the device: when one of a later plan begins, all operations of
// earlier plans have ended. That ends those of which no channel is ever heard: collectives by copy engines and by
// symmetric kernels. Until then they are issued and not begun, which no verdict takes for a hang, since their peers
// have not begun them either. A hang within one of them is not seen. A communicator that does nothing else is cut off
// at the number of launches that a device queues.
//
// Version 2 does not tell of channels. There all counts as completed when it is enqueued: only counters are known, and
// nobody hangs.
//
// A handle is a number and no pointer. NCCL never looks into it, and one that is late, or of another process, is
// noticed.
//
// None of this waits, takes a lock, allocates or calls the system, but for BeginCommunicator, which happens where NCCL
// itself waits for the network; and but for the C library, which makes place for a thread's own variables when it first
// comes here. What has no place is counted in the record.
#ifndef AIMASTER_PROBE_NCCL_EVENTS_H_
#define AIMASTER_PROBE_NCCL_EVENTS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct CommunicatorFacts {
  bool are_known;       // false: each operation tells what is known
  bool tells_channels;  // whether it will be told when the device begins and ends
  uint64_t id;          // 0: not known
  const char* name;     // NULL: it has none
  int ranks;            // 0: not told
  int rank;
};

struct OperationFacts {
  struct CommunicatorFacts communicator;  // used where it was not known at the beginning
  const char* function;                   // "AllReduce"
  const char* type;                       // "ncclFloat32"
  size_t count;
  int peer;        // or root
  int channels;    // 0: not told exactly
  bool is_common;  // from rank to rank
};

// The context of a communicator; NULL: nothing is recorded, and then nothing needs to be told.
void* BeginCommunicator(const struct CommunicatorFacts* facts);
void EndCommunicator(void* context);

// Soon something will be issued.
void PrepareIssue(void* context);
// What is issued until the next plan is launched together.
void BeginPlan(void* context);
void* IssueOperation(void* context, const struct OperationFacts* facts);
void* BeginChannel(void* operation);
// Of an operation: it is enqueued; of a channel: the device has ended it.
void StopEvent(void* handle);

#endif  // AIMASTER_PROBE_NCCL_EVENTS_H_
