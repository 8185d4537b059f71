// The communicators of NCCL, and the record of this process. NCCL unloads its plugin when the last communicator is
// gone, and may load it again; the library stays where it is, and so does its record, which goes on.
//
// A communicator tells its size and the rank of this process in it, and nothing of who the others are: that comes out
// where all records are looked at together, by the id that all members have.
#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "probe/nccl/events.h"
#include "probe/nccl/state.h"
#include "probe/nccl/words.h"

struct Recorder* the_recorder;
struct Communicator the_communicators[kCommunicators];

// Whether the record is open, and above that which process has opened it: a child has to open its own.
enum { kOpening = 1, kOpened = 2, kStageBits = 2 };
static uint32_t the_stage;

static bool ReadNumber(const char* name, uint32_t* number) {
  const char* text = getenv(name);
  if (!text || !*text) return false;
  uint32_t value = 0;
  for (; *text; ++text) {
    if (*text < '0' || *text > '9' || value > 100000000) return false;
    value = value * 10 + (uint32_t)(*text - '0');
  }
  *number = value;
  return true;
}

// As launchers tell it: what is nearest to the program comes first, since one launcher may have started another.
static void TellWorld(void) {
  static const char* const kNames[][2] = {{"RANK", "WORLD_SIZE"},
                                          {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                          {"PMI_RANK", "PMI_SIZE"},
                                          {"SLURM_PROCID", "SLURM_NTASKS"}};
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; ++i) {
    uint32_t rank, size;
    if (!ReadNumber(kNames[i][0], &rank) || !ReadNumber(kNames[i][1], &size) || rank >= size) continue;
    RecorderSetWorld(the_recorder, rank, size);
    return;
  }
}

static void OpenRecord(void) {
  const char* names[kFunctionWords];
  for (int i = 0; i < kFunctionWords; ++i) names[i] = kFunctionWord[i].name;
  the_recorder = RecorderOpen(kRecordNccl, names, kFunctionWords);
  TellWorld();
}

// What a parent has begun is not ours.
static void ForgetParent(void) {
  for (int i = 0; i < kCommunicators; ++i) {
    STORE(the_communicators[i].state, kUnused);
    the_communicators[i].first = the_communicators[i].last + 1;
  }
}

static void EnsureRecord(void) {
  const uint32_t process = (uint32_t)getpid() << kStageBits;
  for (;;) {
    uint32_t stage = __atomic_load_n(&the_stage, __ATOMIC_ACQUIRE);
    if (stage == (process | kOpened)) return;
    // Another thread opens it, which takes no longer than to make a file.
    if (stage == (process | kOpening)) {
      nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
      continue;
    }
    if (!__atomic_compare_exchange_n(&the_stage, &stage, process | kOpening, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED)) {
      continue;
    }
    if (stage != 0) ForgetParent();
    OpenRecord();
    PUBLISH(the_stage, process | kOpened);
    return;
  }
}

static struct Communicator* TakePlace(void) {
  for (int i = 0; i < kCommunicators; ++i) {
    uint32_t unused = kUnused;
    if (__atomic_compare_exchange_n(&the_communicators[i].state, &unused, kBeingMade, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED)) {
      return &the_communicators[i];
    }
  }
  return NULL;
}

static uint32_t Register(const struct CommunicatorFacts* facts) {
  if (facts->rank < 0 || (facts->ranks != 0 && facts->rank >= facts->ranks)) return RECORD_NONE;
  return RecorderAddCommunicator(the_recorder, facts->id, facts->name, NULL, (uint32_t)facts->ranks,
                                 (uint32_t)facts->rank);
}

void* BeginCommunicator(const struct CommunicatorFacts* facts) {
  EnsureRecord();
  if (!the_recorder) return NULL;
  struct Communicator* communicator = TakePlace();
  if (!communicator) {
    if (the_recorder->file) ADD(HeaderOf(the_recorder)->communicators_dropped, 1);
    return NULL;
  }
  communicator->place = facts->are_known ? Register(facts) : PLACE_UNTOLD;
  communicator->tells_channels = facts->tells_channels;
  communicator->is_plan_issued = true;
  communicator->started = 0;
  communicator->started_plan = communicator->plan;
  communicator->listed = communicator->unlisted = communicator->unlisted_seen = 0;
  communicator->hearing = kHearsUnknown;
  communicator->first = communicator->first_seen = communicator->last + 1;
  const uint32_t generation = ++communicator->generation;
  PUBLISH(communicator->state, (uint32_t)kUsed);
  return MakeHandle(kContext, communicator, generation);
}

void EndCommunicator(void* context) {
  struct Communicator* communicator = context ? PlaceOf(context) : NULL;
  if (!communicator || NumberOf(context) != communicator->generation) return;
  uint32_t used = kUsed;
  if (!__atomic_compare_exchange_n(&communicator->state, &used, kBeingMade, false, __ATOMIC_ACQUIRE,
                                   __ATOMIC_RELAXED)) {
    return;
  }
  ForgetOperations(communicator);
  RecorderRetireCommunicator(the_recorder, communicator->place);
  PUBLISH(communicator->state, (uint32_t)kUnused);
}

uint32_t LearnPlace(struct Communicator* communicator, const struct CommunicatorFacts* facts) {
  uint32_t untold = PLACE_UNTOLD;
  if (!__atomic_compare_exchange_n(&communicator->place, &untold, RECORD_NONE, false, __ATOMIC_ACQUIRE,
                                   __ATOMIC_ACQUIRE)) {
    return untold;
  }
  const uint32_t place = Register(facts);
  PUBLISH(communicator->place, place);
  return place;
}

// A process that ends while it still communicates is not done with it.
static void __attribute__((destructor)) EndRecord(void) {
  for (int i = 0; i < kCommunicators; ++i) {
    if (LOAD(the_communicators[i].state) != kUnused) return;
  }
  RecorderFinish(the_recorder);
}
