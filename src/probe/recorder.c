#define _GNU_SOURCE
#include "probe/recorder.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe/recorder_state.h"

// Where an operation looks for a place among the open ones: at most so many, since a full table must not cost more than
// one that is not.
enum { kPlacesTried = 128 };

// Tickets of operations without a place: that, and the counter that will go up.
#define TICKET_NO_PLACE (1u << 31)
#define TICKET_ELSEWHERE (1u << 30)
#define TICKET_COMMON (1u << 29)
#define TICKET_UNCOUNTED (1u << 28)
#define TICKET_BLOCKING (1u << 27)
#define TICKET_COMMUNICATOR (kRecordCommunicators - 1u)
static_assert((kRecordCommunicators & (kRecordCommunicators - 1)) == 0, "a ticket's communicator is found by a mask");

// What a thread knows about itself.
static __thread struct {
  const struct Recorder* recorder;
  unsigned char* file;  // of which it has asked for a place
  uint32_t place;       // of the thread, or RECORD_NONE
  uint32_t next;        // of the open operations, where it looks first
} the_thread;

static bool HasEnded(uint64_t owner) {
  return syscall(SYS_tgkill, (long)getpid(), (long)owner, 0) != 0;  // of a thread of ours that can only mean this
}

static bool Own(struct RecordThread* thread, uint64_t before, uint64_t owner) {
  return __atomic_compare_exchange_n(&thread->owner, &before, owner, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

// Once for each thread: here the system is called.
static uint32_t __attribute__((noinline)) FindThreadPlace(struct Recorder* recorder) {
  const uint64_t self = (uint64_t)syscall(SYS_gettid);
  the_thread.recorder = recorder;
  the_thread.file = recorder->file;
  the_thread.place = RECORD_NONE;
  the_thread.next = (uint32_t)self * 61 % kRecordOperations;
  for (uint32_t i = 0; i < kRecordThreads; ++i) {
    struct RecordThread* thread = ThreadAt(recorder, i);
    const uint64_t owner = LOAD(thread->owner);
    if (owner != 0 && owner != self && !HasEnded(owner)) continue;
    if (!Own(thread, owner, self)) continue;
    STORE(thread->inside, 0);
    STORE(thread->changed_ns, NowNs());
    the_thread.place = i;
    the_thread.next = i * (kRecordOperations / kRecordThreads);
    return i;
  }
  ADD(HeaderOf(recorder)->threads_dropped, 1);
  return RECORD_NONE;
}

static inline uint32_t ThreadPlace(struct Recorder* recorder) {
  if (__builtin_expect(the_thread.recorder == recorder && the_thread.file == recorder->file, 1)) {
    return the_thread.place;
  }
  return FindThreadPlace(recorder);
}

static inline bool IsOff(const struct Recorder* recorder) { return __builtin_expect(!recorder || !recorder->file, 0); }

static void Enter(struct Recorder* recorder, uint16_t name, uint64_t now) {
  const uint32_t place = ThreadPlace(recorder);
  if (place == RECORD_NONE) {
    ADD(HeaderOf(recorder)->others_entered, 1);
    return;
  }
  struct RecordThread* thread = ThreadAt(recorder, place);
  STORE(thread->changed_ns, now);
  STORE(thread->inside, (uint32_t)name + 1);
}

static void Leave(struct Recorder* recorder, uint64_t now) {
  const uint32_t place = ThreadPlace(recorder);
  if (place == RECORD_NONE) {
    ADD(HeaderOf(recorder)->others_left, 1);
    return;
  }
  struct RecordThread* thread = ThreadAt(recorder, place);
  STORE(thread->changed_ns, now);
  STORE(thread->inside, 0);
}

void RecorderEnter(struct Recorder* recorder, uint16_t name) {
  if (!IsOff(recorder)) Enter(recorder, name, NowNs());
}

void RecorderLeave(struct Recorder* recorder) {
  if (!IsOff(recorder)) Leave(recorder, NowNs());
}

// The number of a place that is now being written by this thread alone, or RECORD_NONE.
static uint32_t ClaimOperation(struct Recorder* recorder, uint64_t* state) {
  uint32_t place = the_thread.next;
  for (int tried = 0; tried < kPlacesTried; ++tried, place = (place + 1) % kRecordOperations) {
    struct RecordOperation* operation = OperationAt(recorder, place);
    *state = LOAD(operation->state);
    if ((*state & 3) != kRecordFree) continue;
    if (__atomic_compare_exchange_n(&operation->state, state, *state | kRecordBeingWritten, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED)) {
      the_thread.next = (place + 1) % kRecordOperations;
      return place;
    }
  }
  the_thread.next = (the_thread.next + kPlacesTried) % kRecordOperations;
  return RECORD_NONE;
}

static void CopyWords(void* to, const void* from, size_t words) {
  for (size_t i = 0; i < words; ++i) STORE(((uint64_t*)to)[i], ((const uint64_t*)from)[i]);
}

static void WriteOperation(struct RecordOperation* to, struct RecordOperation* whole) {
  const uint64_t* words = (const uint64_t*)(const void*)whole;
  whole->check = RecordCheck(words + 1, kRecordOperationCheckWords);
  STORE(to->check, whole->check);
  CopyWords(&to->communicator, &whole->communicator, 6);
  PUBLISH(to->state, whole->state);
}

static RecorderTicket BeginElsewhere(struct Recorder* recorder, const struct RecorderOperation* begun, uint64_t now) {
  ADD(HeaderOf(recorder)->elsewhere_begun, 1);
  STORE(HeaderOf(recorder)->elsewhere_changed_ns, now);
  const bool is_blocking = begun->flags & kRecordBlocking;
  if (is_blocking) Enter(recorder, begun->name, now);
  return TICKET_NO_PLACE | TICKET_ELSEWHERE | (is_blocking ? TICKET_BLOCKING : 0);
}

void RecorderPrepare(struct Recorder* recorder, uint32_t communicator) {
  if (IsOff(recorder) || communicator >= kRecordCommunicators) return;
  FetchForWriting(&CommunicatorAt(recorder, communicator)->issued);
  if (the_thread.recorder == recorder) FetchForWriting(OperationAt(recorder, the_thread.next));
}

RecorderTicket RecorderBegin(struct Recorder* recorder, const struct RecorderOperation* begun) {
  if (IsOff(recorder)) return RECORDER_NO_TICKET;
  const uint64_t now = NowNs();
  if (begun->communicator >= kRecordCommunicators) return BeginElsewhere(recorder, begun, now);
  if (begun->flags & kRecordBlocking) {
    Enter(recorder, begun->name, now);
  } else {
    ThreadPlace(recorder);
  }

  struct RecordCommunicator* communicator = CommunicatorAt(recorder, begun->communicator);
  uint64_t sequence = 0;
  const bool is_common = begun->flags & kRecordPointToPoint;
  if (begun->flags & kRecordUncounted) {
  } else if (is_common) {
    sequence = ADD(communicator->common_issued, 1) + 1;
    STORE(communicator->common_issued_ns, now);
  } else {
    sequence = ADD(communicator->issued, 1) + 1;
    STORE(communicator->issued_ns, now);
  }

  uint64_t before;
  const uint32_t place = begun->is_unlisted ? RECORD_NONE : ClaimOperation(recorder, &before);
  if (place == RECORD_NONE) {
    ADD(HeaderOf(recorder)->operations_dropped, 1);
    return TICKET_NO_PLACE | (is_common ? TICKET_COMMON : 0) |
           ((begun->flags & kRecordUncounted) ? TICKET_UNCOUNTED : 0) |
           ((begun->flags & kRecordBlocking) ? TICKET_BLOCKING : 0) | begun->communicator;
  }
  struct RecordOperation whole = {
      .state = before + 4 + kRecordOpen,
      .communicator = RECORD_REFERENCE(begun->communicator, communicator->generation),
      .peer = begun->peer,
      .sequence = sequence,
      .bytes = begun->bytes,
      .name = begun->name,
      .function = begun->function,
      .type = begun->type,
      .flags = begun->flags,
      .issued_ns = now,
      .started_ns = (begun->flags & kRecordBlocking) ? now : 0,
  };
  WriteOperation(OperationAt(recorder, place), &whole);
  return place;
}

void RecorderStart(struct Recorder* recorder, RecorderTicket ticket) {
  if (IsOff(recorder) || !RecorderHasPlace(ticket)) return;
  struct RecordOperation* operation = OperationAt(recorder, ticket);
  if (LOAD(operation->started_ns) == 0) STORE(operation->started_ns, NowNs());
}

static void WriteFinished(struct Recorder* recorder, const struct RecordOperation* operation, uint64_t now) {
  const uint64_t started_ns = LOAD(operation->started_ns);
  const uint32_t place = ThreadPlace(recorder);
  if (place == RECORD_NONE) {
    ADD(HeaderOf(recorder)->finished_dropped, 1);
    return;
  }
  struct RecordThread* thread = ThreadAt(recorder, place);
  const uint64_t ordinal = LOAD(thread->finished) + 1;
  struct RecordFinished whole = {.ordinal = ordinal,
                                 .communicator = operation->communicator,
                                 .peer = operation->peer,
                                 .sequence = operation->sequence,
                                 .bytes = operation->bytes,
                                 .name = operation->name,
                                 .function = operation->function,
                                 .type = operation->type,
                                 .flags = operation->flags,
                                 .issued_ns = operation->issued_ns,
                                 .duration_ns = now - (started_ns ? started_ns : operation->issued_ns)};
  whole.check = RecordCheck((const uint64_t*)(const void*)&whole + 1, kRecordFinishedCheckWords);
  CopyWords(RingOf(recorder, place) + (ordinal - 1) % kRecordRingLength, &whole, sizeof whole / 8);
  PUBLISH(thread->finished, ordinal);
}

static void CountEnd(struct RecordCommunicator* communicator, bool is_common, uint64_t now) {
  if (is_common) {
    ADD(communicator->common_completed, 1);
    STORE(communicator->common_completed_ns, now);
  } else {
    ADD(communicator->completed, 1);
    STORE(communicator->completed_ns, now);
  }
}

static void EndWithoutPlace(struct Recorder* recorder, RecorderTicket ticket, uint64_t now) {
  if (ticket & TICKET_ELSEWHERE) {
    ADD(HeaderOf(recorder)->elsewhere_ended, 1);
    STORE(HeaderOf(recorder)->elsewhere_changed_ns, now);
  } else if (!(ticket & TICKET_UNCOUNTED)) {
    CountEnd(CommunicatorAt(recorder, ticket & TICKET_COMMUNICATOR), ticket & TICKET_COMMON, now);
    ADD(HeaderOf(recorder)->finished_dropped, 1);
  }
  if (ticket & TICKET_BLOCKING) Leave(recorder, now);
}

void RecorderEnd(struct Recorder* recorder, RecorderTicket ticket) {
  if (IsOff(recorder) || ticket == RECORDER_NO_TICKET) return;
  const uint64_t now = NowNs();
  if (!RecorderHasPlace(ticket)) return EndWithoutPlace(recorder, ticket, now);
  struct RecordOperation* operation = OperationAt(recorder, ticket);
  const uint64_t state = LOAD(operation->state);
  if ((state & 3) != kRecordOpen) return;
  if (!(operation->flags & kRecordUncounted)) {
    WriteFinished(recorder, operation, now);
    CountEnd(CommunicatorAt(recorder, operation->communicator & TICKET_COMMUNICATOR),
             operation->flags & kRecordPointToPoint, now);
  }
  if (operation->flags & kRecordBlocking) Leave(recorder, now);
  PUBLISH(operation->state, state & ~UINT64_C(3));
  the_thread.next = ticket;  // it is in this processor's cache
}

void RecorderForget(struct Recorder* recorder, RecorderTicket ticket) {
  if (IsOff(recorder) || ticket == RECORDER_NO_TICKET) return;
  ADD(HeaderOf(recorder)->requests_dropped, 1);
  RecorderEnd(recorder, ticket);
}
