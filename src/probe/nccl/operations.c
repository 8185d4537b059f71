#include "probe/nccl/events.h"
#include "probe/nccl/state.h"
#include "probe/nccl/words.h"

#define SET(word, bits) __atomic_fetch_or(&(word), (bits), __ATOMIC_RELAXED)

static struct Communicator* CommunicatorOf(void* context) {
  struct Communicator* communicator = context ? PlaceOf(context) : NULL;
  const bool is_it = communicator && KindOf(context) == kContext &&
                     __atomic_load_n(&communicator->state, __ATOMIC_ACQUIRE) == kUsed &&
                     communicator->generation == NumberOf(context);
  return is_it ? communicator : NULL;
}

static void Prepare(struct Communicator* communicator) {
  FetchForWriting(OperationOf(communicator, LOAD(communicator->last) + 1));
  RecorderPrepare(the_recorder, LOAD(communicator->place));
}

void PrepareIssue(void* context) {
  struct Communicator* communicator = CommunicatorOf(context);
  if (communicator) Prepare(communicator);
}

static void NextPlan(struct Communicator* communicator) {
  STORE(communicator->plan, LOAD(communicator->plan) + 1);
  STORE(communicator->is_plan_issued, false);
}

void BeginPlan(void* context) {
  struct Communicator* communicator = CommunicatorOf(context);
  if (!communicator) return;
  NextPlan(communicator);
  Prepare(communicator);
}

static void CountCollective(struct Communicator* communicator) {
  RecorderCountStart(the_recorder, LOAD(communicator->place), ADD(communicator->started, 1) + 1);
}

static void CountStart(struct Communicator* communicator, struct Operation* operation) {
  const bool is_counted = SET(operation->state, kStarted) & kStarted;
  if (!is_counted && !operation->is_common) CountCollective(communicator);
}

static void End(struct Communicator* communicator, struct Operation* operation, bool is_told) {
  CountStart(communicator, operation);
  const RecorderTicket ticket = operation->ticket;
  if (__atomic_fetch_or(&operation->state, kEnded, __ATOMIC_ACQ_REL) & kEnded) return;
  if (RecorderHasPlace(ticket)) ADD(communicator->unlisted, 1);
  if (is_told) {
    RecorderEnd(the_recorder, ticket);
  } else {
    RecorderForget(the_recorder, ticket);
  }
}

// Places become free in the order in which they were taken.
static void FreePlaces(struct Communicator* communicator) {
  for (;;) {
    uint64_t first = LOAD(communicator->first);
    const struct Operation* operation = OperationOf(communicator, first);
    if (__atomic_load_n(&operation->number, __ATOMIC_ACQUIRE) != first) return;
    if (!(__atomic_load_n(&operation->state, __ATOMIC_ACQUIRE) & kEnded)) return;
    if (!__atomic_compare_exchange_n(&communicator->first, &first, first + 1, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED)) {
      return;  // another thread is at it
    }
  }
}

static bool HasRoom(struct Communicator* communicator, uint64_t number, uint64_t room) {
  if (number - __atomic_load_n(&communicator->first_seen, __ATOMIC_ACQUIRE) < room) return true;
  const uint64_t first = __atomic_load_n(&communicator->first, __ATOMIC_ACQUIRE);
  PUBLISH(communicator->first_seen, first);
  return number - first < room;
}

// The number of an operation whose place nobody else has; 0: there is no room.
static uint64_t TakeNumber(struct Communicator* communicator, uint64_t room) {
  uint64_t last = LOAD(communicator->last);
  do {
    if (!HasRoom(communicator, last + 1, room)) return 0;
  } while (
      !__atomic_compare_exchange_n(&communicator->last, &last, last + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return last + 1;
}

// Ends the oldest operation, of which nothing was heard, if the device must have done it.
static void EndOldest(struct Communicator* communicator, uint32_t plan) {
  const uint64_t first = LOAD(communicator->first);
  struct Operation* operation = OperationOf(communicator, first);
  if (__atomic_load_n(&operation->number, __ATOMIC_ACQUIRE) != first) return;
  if (plan - operation->plan >= kPlansQueued) End(communicator, operation, true);
  FreePlaces(communicator);
}

static bool IsListFull(struct Communicator* communicator, uint32_t most) {
  const uint32_t listed = LOAD(communicator->listed);
  if (listed - LOAD(communicator->unlisted_seen) < most) return false;
  STORE(communicator->unlisted_seen, LOAD(communicator->unlisted));
  return listed - LOAD(communicator->unlisted_seen) >= most;
}

static RecorderTicket Begin(struct Communicator* communicator, const struct OperationFacts* facts, uint16_t name) {
  const struct FunctionWord* function = &kFunctionWord[name];
  const struct TypeWord type = TypeOf(facts->type);
  uint32_t place = __atomic_load_n(&communicator->place, __ATOMIC_ACQUIRE);
  if (place == PLACE_UNTOLD) place = LearnPlace(communicator, &facts->communicator);
  const bool is_full = IsListFull(communicator, facts->is_common ? kListedMessages : kListed);
  const bool has_peer = facts->peer >= 0 && (facts->is_common || function->has_root);
  const struct RecorderOperation operation = {.communicator = place,
                                              .peer = has_peer ? (uint32_t)facts->peer : RECORD_NONE,
                                              .bytes = facts->count * type.bytes,
                                              .flags = facts->is_common ? kRecordPointToPoint : 0,
                                              .name = name,
                                              .function = function->function,
                                              .type = type.type,
                                              .is_unlisted = is_full};
  const RecorderTicket ticket = RecorderBegin(the_recorder, &operation);
  if (RecorderHasPlace(ticket)) ADD(communicator->listed, 1);
  return ticket;
}

static bool IsCommon(uint8_t function) { return function == kRecordSend || function == kRecordReceive; }

void* IssueOperation(void* context, const struct OperationFacts* facts) {
  struct Communicator* communicator = CommunicatorOf(context);
  if (!communicator) return NULL;
  const uint16_t name = FunctionNumber(facts->function);
  if (IsCommon(kFunctionWord[name].function) != facts->is_common) return NULL;
  // A plan begins where it is said, or where something comes after the last one was enqueued.
  if (LOAD(communicator->is_plan_issued)) NextPlan(communicator);
  const uint32_t plan = LOAD(communicator->plan);
  const uint64_t room = facts->is_common ? kMessages : kOperations;
  uint64_t number = TakeNumber(communicator, room);
  if (number == 0) {
    EndOldest(communicator, plan);
    number = TakeNumber(communicator, room);
  }
  const RecorderTicket ticket = Begin(communicator, facts, name);
  if (number == 0) {
    if (RecorderHasPlace(ticket)) ADD(communicator->unlisted, 1);
    if (!facts->is_common) CountCollective(communicator);
    RecorderForget(the_recorder, ticket);
    return NULL;
  }
  struct Operation* operation = OperationOf(communicator, number);
  STORE(operation->number, 0);
  operation->ticket = ticket;
  operation->plan = plan;
  operation->announced = facts->is_common || facts->channels <= 0 ? 0 : (uint16_t)facts->channels;
  operation->is_common = facts->is_common;
  STORE(operation->channels, 0);
  STORE(operation->state, 0);
  PUBLISH(operation->number, number);
  return MakeHandle(kOperation, communicator, number);
}

static struct Operation* FindOperation(const void* handle, struct Communicator** communicator) {
  *communicator = PlaceOf(handle);
  if (!*communicator) return NULL;
  struct Operation* operation = OperationOf(*communicator, NumberOf(handle));
  return __atomic_load_n(&operation->number, __ATOMIC_ACQUIRE) == NumberOf(handle) ? operation : NULL;
}

// The device is in a later plan, so it has done with the earlier ones.
static void EndEarlierPlans(struct Communicator* communicator, uint32_t plan) {
  if ((int32_t)(plan - LOAD(communicator->started_plan)) <= 0) return;
  STORE(communicator->started_plan, plan);
  for (uint64_t number = LOAD(communicator->first);; ++number) {
    struct Operation* operation = OperationOf(communicator, number);
    if (__atomic_load_n(&operation->number, __ATOMIC_ACQUIRE) != number) break;  // it was not issued yet
    if ((int32_t)(operation->plan - plan) >= 0) break;
    if (LOAD(operation->state) & kEnded) continue;
    const uint32_t channels = LOAD(operation->channels);
    const bool is_short = operation->announced != 0 && channels != 0 && (channels & 0xffff) == channels >> 16;
    if (is_short) STORE(communicator->hearing, (uint32_t)kHearsFewer);
    End(communicator, operation, true);
  }
  FreePlaces(communicator);
}

void* BeginChannel(void* parent) {
  struct Communicator* communicator;
  struct Operation* operation = parent && KindOf(parent) == kOperation ? FindOperation(parent, &communicator) : NULL;
  if (!operation) return NULL;
  if ((ADD(operation->channels, 1) & 0xffff) == 0 && !(LOAD(operation->state) & kEnded)) {
    EndEarlierPlans(communicator, operation->plan);
    RecorderStart(the_recorder, operation->ticket);
    CountStart(communicator, operation);
  }
  return MakeHandle(kChannel, communicator, NumberOf(parent));
}

static void EndChannel(struct Communicator* communicator, struct Operation* operation) {
  const uint32_t channels = ADD(operation->channels, 1u << 16) + (1u << 16);
  const uint32_t begun = channels & 0xffff, ended = channels >> 16;
  uint32_t hearing = LOAD(communicator->hearing);
  const bool are_all = operation->announced != 0 && ended >= operation->announced;
  if (are_all && hearing == kHearsUnknown) STORE(communicator->hearing, (uint32_t)kHearsAll);
  const bool must_be_all = operation->announced != 0 && hearing == kHearsAll;
  if (!are_all && (must_be_all || ended < begun)) return;
  if (!(LOAD(operation->state) & kEnded)) End(communicator, operation, true);
  FreePlaces(communicator);
}

void StopEvent(void* handle) {
  struct Communicator* communicator;
  struct Operation* operation = handle ? FindOperation(handle, &communicator) : NULL;
  if (!operation) return;
  if (KindOf(handle) == kChannel) return EndChannel(communicator, operation);
  if (KindOf(handle) != kOperation) return;
  STORE(communicator->is_plan_issued, true);
  if (communicator->tells_channels) return;
  End(communicator, operation, false);
  FreePlaces(communicator);
}

void ForgetOperations(struct Communicator* communicator) {
  for (uint64_t number = LOAD(communicator->first); number <= LOAD(communicator->last); ++number) {
    struct Operation* operation = OperationOf(communicator, number);
    if (__atomic_load_n(&operation->number, __ATOMIC_ACQUIRE) != number) continue;
    if (!(LOAD(operation->state) & kEnded)) End(communicator, operation, false);
  }
  FreePlaces(communicator);
}
