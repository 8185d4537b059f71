#define _GNU_SOURCE
// The communicators of the record: made, named and retired. None of this is where time counts.
#include <string.h>

#include "probe/recorder.h"
#include "probe/recorder_state.h"

// The oldest retired place is taken last of all, since other members may still be in its last operation.
static uint32_t TakePlace(struct Recorder* recorder) {
  for (uint32_t i = 0; i < kRecordCommunicators; ++i) {
    uint32_t unused = kRecordUnused;
    if (LOAD(CommunicatorAt(recorder, i)->state) == kRecordUnused &&
        __atomic_compare_exchange_n(&CommunicatorAt(recorder, i)->state, &unused, kRecordUsed, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
      return i;
    }
  }
  for (int attempt = 0; attempt < 4; ++attempt) {
    uint32_t oldest = RECORD_NONE;
    for (uint32_t i = 0; i < kRecordCommunicators; ++i) {
      if (LOAD(CommunicatorAt(recorder, i)->state) != kRecordRetired) continue;
      if (oldest == RECORD_NONE || LOAD(recorder->retired_order[i]) < LOAD(recorder->retired_order[oldest])) oldest = i;
    }
    if (oldest == RECORD_NONE) return RECORD_NONE;
    uint32_t retired = kRecordRetired;
    if (__atomic_compare_exchange_n(&CommunicatorAt(recorder, oldest)->state, &retired, kRecordUsed, false,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      return oldest;
    }
  }
  return RECORD_NONE;
}

// As runs where they fit, since that is how groups are mostly made: neighbours, or every eighth.
static bool WriteRuns(struct RecordCommunicator* communicator, const uint32_t* members, uint32_t size) {
  uint32_t words = 0;
  for (uint32_t i = 0; i < size;) {
    if (words + 3 > kRecordMemberWords) return false;
    uint32_t end = i + 1;
    const uint32_t step = end < size ? members[end] - members[i] : 0;
    while (end < size && members[end] - members[end - 1] == step) ++end;
    communicator->members[words++] = members[i];
    communicator->members[words++] = step;
    communicator->members[words++] = end - i;
    i = end;
  }
  communicator->members_kind = kRecordMembersRuns;
  communicator->member_words = words;
  return true;
}

static void WriteMembers(struct Recorder* recorder, struct RecordCommunicator* communicator, const uint32_t* members,
                         uint32_t size) {
  if (!members) return;
  if (WriteRuns(communicator, members, size)) return;
  if (size <= kRecordMemberWords) {
    memcpy(communicator->members, members, size * sizeof *members);
    communicator->members_kind = kRecordMembersListed;
    communicator->member_words = size;
    return;
  }
  communicator->members_kind = kRecordMembersUnknown;
  communicator->member_words = 0;
  ADD(HeaderOf(recorder)->members_dropped, 1);
}

static void WriteName(struct RecordCommunicator* communicator, const char* name) {
  memset(communicator->name, 0, sizeof communicator->name);
  if (name) strncpy(communicator->name, name, sizeof communicator->name - 1);
}

static void WriteCheck(struct RecordCommunicator* communicator) {
  const uint64_t* words = (const uint64_t*)(const void*)communicator;
  PUBLISH(communicator->check, RecordCheck(words + 1, kRecordCommunicatorCheckWords));
}

uint32_t RecorderAddCommunicator(struct Recorder* recorder, uint64_t id, const char* name, const uint32_t* members,
                                 uint32_t size, uint32_t own_rank) {
  if (!recorder || !recorder->file) return RECORD_NONE;
  const uint32_t place = TakePlace(recorder);
  if (place == RECORD_NONE) {
    ADD(HeaderOf(recorder)->communicators_dropped, 1);
    return RECORD_NONE;
  }
  struct RecordCommunicator* communicator = CommunicatorAt(recorder, place);
  STORE(communicator->check, 0);  // who reads now sees that it is being written
  ++communicator->generation;
  // Its state stays: a place that looked unused for a moment would be taken by another thread.
  const size_t begin = offsetof(struct RecordCommunicator, id);
  memset((char*)communicator + begin, 0, sizeof *communicator - begin);
  communicator->id = id;
  communicator->size = size == 0 ? own_rank + 1 : size;
  communicator->flags = size == 0 ? kRecordSizeLeast : 0;
  communicator->rank = own_rank;
  communicator->created_ns = NowNs();
  WriteMembers(recorder, communicator, members, size);
  WriteName(communicator, name);
  WriteCheck(communicator);
  return place;
}

void RecorderNameCommunicator(struct Recorder* recorder, uint32_t place, const char* name) {
  if (!recorder || !recorder->file || place >= kRecordCommunicators) return;
  struct RecordCommunicator* communicator = CommunicatorAt(recorder, place);
  STORE(communicator->check, 0);
  WriteName(communicator, name);
  WriteCheck(communicator);
}

void RecorderRetireCommunicator(struct Recorder* recorder, uint32_t place) {
  if (!recorder || !recorder->file || place >= kRecordCommunicators) return;
  struct RecordCommunicator* communicator = CommunicatorAt(recorder, place);
  STORE(recorder->retired_order[place], ADD(recorder->next_retired, 1));
  // The check first: once it is retired, somebody else may take it.
  struct RecordCommunicator retired = *communicator;
  retired.state = kRecordRetired;
  STORE(communicator->check, RecordCheck((const uint64_t*)(const void*)&retired + 1, kRecordCommunicatorCheckWords));
  PUBLISH(communicator->state, (uint32_t)kRecordRetired);
}

void RecorderCountStart(struct Recorder* recorder, uint32_t place, uint64_t started) {
  if (!recorder || !recorder->file || place >= kRecordCommunicators) return;
  STORE(CommunicatorAt(recorder, place)->started, started);
  STORE(CommunicatorAt(recorder, place)->started_ns, NowNs());
}

void RecorderSetProgress(struct Recorder* recorder, uint32_t place, uint64_t progress) {
  if (!recorder || !recorder->file || place >= kRecordCommunicators) return;
  STORE(CommunicatorAt(recorder, place)->progress, progress);
}
