// Which operation a request stands for. Requests that a program prepares once and starts again and again keep a
// template.
#include "probe/pmpi/pmpi.h"

enum { kPreparedMax = 1024 };
#define IS_PREPARED (UINT64_C(1) << 32)  // in the table's values; below it the index of the template, else the ticket

static struct HandleTable the_requests;
static struct Prepared {
  uint32_t is_used;
  RecorderTicket ticket;  // while it is started
  struct RecorderOperation operation;
} the_prepared[kPreparedMax];
static struct Awaited {
  const MPI_Comm* made;  // NULL, both: the operation makes no communicator
  const MPI_Fint* made_in_fortran;
  uint64_t creation;
} the_awaited[kRecordOperations];

static void End(RecorderTicket ticket) {
  if (RecorderHasPlace(ticket)) {
    const struct Awaited awaited = the_awaited[ticket];
    if (awaited.made || awaited.made_in_fortran) {
      the_awaited[ticket] = (struct Awaited){0};
      const MPI_Comm made = awaited.made ? *awaited.made : CommunicatorOfFortran(*awaited.made_in_fortran);
      RegisterMade(made, awaited.creation);
    }
  }
  RecorderEnd(the_recorder, ticket);
}

void AwaitCommunicator(RecorderTicket ticket, const MPI_Comm* made, const MPI_Fint* made_in_fortran,
                       uint64_t creation) {
  if (!RecorderHasPlace(ticket)) return;
  the_awaited[ticket] = (struct Awaited){.made = made, .made_in_fortran = made_in_fortran, .creation = creation};
}

void BindRequest(uint64_t request, RecorderTicket ticket) {
  if (ticket == RECORDER_NO_TICKET) return;
  // A handle that is there already belongs to something that has completed unseen; or, as of MPICH, to all operations
  // that have completed at once.
  uint64_t before;
  if (HandleTake(&the_requests, request, &before) && !(before & IS_PREPARED)) End((RecorderTicket)before);
  if (request == the_null_request) return End(ticket);
  if (!HandleInsert(&the_requests, request, ticket)) RecorderForget(the_recorder, ticket);
}

void PrepareRequest(uint64_t request, const struct RecorderOperation* operation) {
  for (uint32_t i = 0; i < kPreparedMax; ++i) {
    uint32_t unused = 0;
    if (__atomic_load_n(&the_prepared[i].is_used, __ATOMIC_RELAXED) != 0) continue;
    if (!__atomic_compare_exchange_n(&the_prepared[i].is_used, &unused, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
      continue;
    }
    the_prepared[i].operation = *operation;
    the_prepared[i].ticket = RECORDER_NO_TICKET;
    if (!HandleInsert(&the_requests, request, IS_PREPARED | i)) {
      __atomic_store_n(&the_prepared[i].is_used, 0, __ATOMIC_RELEASE);
    }
    return;
  }
}

static RecorderTicket ExchangeTicket(uint64_t value, RecorderTicket ticket) {
  return __atomic_exchange_n(&the_prepared[(uint32_t)value].ticket, ticket, __ATOMIC_ACQ_REL);
}

void StartPrepared(uint64_t request) {
  uint64_t value;
  if (!HandleFind(&the_requests, request, &value) || !(value & IS_PREPARED)) return;
  const RecorderTicket ticket = RecorderBegin(the_recorder, &the_prepared[(uint32_t)value].operation);
  End(ExchangeTicket(value, ticket));  // of one that has completed unseen
}

void FreeRequest(uint64_t request) {
  uint64_t value;
  if (!HandleTake(&the_requests, request, &value)) return;
  if (value & IS_PREPARED) {
    RecorderForget(the_recorder, ExchangeTicket(value, RECORDER_NO_TICKET));
    __atomic_store_n(&the_prepared[(uint32_t)value].is_used, 0, __ATOMIC_RELEASE);
  } else {
    RecorderForget(the_recorder, (RecorderTicket)value);
  }
}

struct Taken TakeRequest(uint64_t request) {
  struct Taken taken = {.key = request};
  if (request == the_null_request || !HandleFind(&the_requests, request, &taken.value)) return (struct Taken){0};
  if (taken.value & IS_PREPARED) return taken;  // its handle stays its own
  return HandleTake(&the_requests, request, &taken.value) ? taken : (struct Taken){0};
}

void StartTaken(const struct Taken* taken) {
  if (taken->key == 0) return;
  const bool is_prepared = taken->value & IS_PREPARED;
  RecorderStart(the_recorder, is_prepared ? the_prepared[(uint32_t)taken->value].ticket : (RecorderTicket)taken->value);
}

void CompleteTaken(const struct Taken* taken) {
  if (taken->key == 0) return;
  const bool is_prepared = taken->value & IS_PREPARED;
  End(is_prepared ? ExchangeTicket(taken->value, RECORDER_NO_TICKET) : (RecorderTicket)taken->value);
}

void PutBackTaken(const struct Taken* taken) {
  if (taken->key == 0 || (taken->value & IS_PREPARED)) return;
  if (!HandleInsert(&the_requests, taken->key, taken->value)) {
    RecorderForget(the_recorder, (RecorderTicket)taken->value);
  }
}

void EndAll(int taken_count, struct Taken* taken, bool are_complete) {
  for (int i = 0; i < taken_count; ++i) {
    if (are_complete) {
      CompleteTaken(&taken[i]);
    } else {
      PutBackTaken(&taken[i]);
    }
  }
}

void EndSome(int taken_count, struct Taken* taken, int complete_count, const int* indices, int first) {
  for (int i = 0; i < complete_count; ++i) {
    const int index = indices[i] - first;
    if (index < 0 || index >= taken_count) continue;
    CompleteTaken(&taken[index]);
    taken[index].key = 0;
  }
  EndAll(taken_count, taken, false);
}

void EnterWait(uint16_t name) {
  ++the_depth;
  RecorderEnter(the_recorder, name);
}

void LeaveWait(void) {
  RecorderLeave(the_recorder);
  --the_depth;
}

void EndCall(bool is_begun, uint64_t request, RecorderTicket ticket) {
  if (is_begun) {
    BindRequest(request, ticket);
  } else {
    RecorderEnd(the_recorder, ticket);
  }
  --the_depth;
}
