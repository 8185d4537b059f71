// The communicators of MPI and their ids. All members of one have to come to the same id without asking each other: so
// it is made of what all of them know, the parent's id, how many others were made of that before, and the smallest of
// its members' world ranks, which tells it from those made by the same call.
//
// Where not all members of the parent take part, they can't have counted alike. There the members themselves take the
// place of the counter, and how many were made of just these.
#include <stdlib.h>

#include "probe/pmpi/session.h"

static struct HandleTable the_places;  // by communicator
static struct HandleTable the_groups;  // how many were made of the same members
static struct {
  uint64_t id;
  uint64_t creations;
} the_made[kRecordCommunicators];
static MPI_Group the_world_group;

static uint64_t Mix(uint64_t sum, uint64_t more) {
  sum = (sum ^ more) * UINT64_C(0xff51afd7ed558ccd);
  return sum ^ sum >> 29;
}

uint32_t PlaceOf(uint64_t communicator) {
  uint64_t place;
  return HandleFind(&the_places, communicator, &place) ? (uint32_t)place : RECORD_NONE;
}

uint64_t NextCreation(uint64_t parent) {
  const uint32_t place = PlaceOf(parent);
  if (place == RECORD_NONE) return 0;
  const uint64_t number = __atomic_add_fetch(&the_made[place].creations, 1, __ATOMIC_RELAXED);
  return Mix(the_made[place].id, number) | 1;
}

static void Register(MPI_Comm communicator, uint64_t id, const char* name, const uint32_t* members, int size,
                     int rank) {
  const uint32_t place = RecorderAddCommunicator(the_recorder, id, name, members, (uint32_t)size, (uint32_t)rank);
  if (place == RECORD_NONE) return;
  the_made[place].id = id;
  the_made[place].creations = 0;
  ForgetCommunicator(KEY(communicator));  // of one that was freed unseen
  if (!HandleInsert(&the_places, KEY(communicator), place)) RecorderRetireCommunicator(the_recorder, place);
}

// The world ranks of its members, which the caller frees; NULL: it has two sides, is of another world, or is none.
static uint32_t* MembersOf(MPI_Comm communicator, int* size, int* rank) {
  if (KEY(communicator) == the_null_communicator) return NULL;
  int has_two_sides = 0;
  if (REAL(Comm_test_inter)(communicator, &has_two_sides) != MPI_SUCCESS || has_two_sides) return NULL;
  REAL(Comm_size)(communicator, size);
  REAL(Comm_rank)(communicator, rank);
  int* numbers = malloc(2 * (size_t)*size * sizeof *numbers);
  if (!numbers) return NULL;
  int* worlds = numbers + *size;
  for (int i = 0; i < *size; ++i) numbers[i] = i;
  MPI_Group group;
  REAL(Comm_group)(communicator, &group);
  REAL(Group_translate_ranks)(group, *size, numbers, the_world_group, worlds);
  REAL(Group_free)(&group);
  for (int i = 0; i < *size; ++i) {
    if (worlds[i] < 0) {
      free(numbers);
      return NULL;
    }
    numbers[i] = worlds[i];
  }
  return (uint32_t*)numbers;
}

void RegisterMade(MPI_Comm made, uint64_t creation) {
  int size = 0, rank = 0;
  uint32_t* members = creation == 0 ? NULL : MembersOf(made, &size, &rank);
  if (!members) return;
  uint32_t smallest = members[0];
  for (int i = 1; i < size; ++i) smallest = members[i] < smallest ? members[i] : smallest;
  Register(made, Mix(creation, smallest), "", members, size, rank);
  free(members);
}

void RegisterMadeByGroup(MPI_Comm made, uint64_t parent, int tag) {
  int size = 0, rank = 0;
  uint32_t* members = MembersOf(made, &size, &rank);
  if (!members) return;
  const uint32_t place = PlaceOf(parent);
  uint64_t id = Mix(place == RECORD_NONE ? 3 : the_made[place].id, (uint64_t)tag + 1);
  for (int i = 0; i < size; ++i) id = Mix(id, members[i] + UINT64_C(1));
  id |= 2;  // 0 and 1 are no keys
  uint64_t before = 0;
  HandleTake(&the_groups, id, &before);
  // Where there is no room to count, it is not recorded: a wrong id is worse than none.
  if (HandleInsert(&the_groups, id, before + 1)) Register(made, Mix(id, before), "", members, size, rank);
  free(members);
}

void ForgetCommunicator(uint64_t communicator) {
  uint64_t place;
  if (HandleTake(&the_places, communicator, &place)) RecorderRetireCommunicator(the_recorder, (uint32_t)place);
}

void RegisterCommunicator(MPI_Comm communicator, const char* name) {
  int size = 0, rank = 0;
  uint32_t* members = MembersOf(communicator, &size, &rank);
  if (!members) return;
  Register(communicator, size == 1 ? Mix(2, members[0]) : 1, name, members, size, rank);
  free(members);
}

void LearnWorldGroup(MPI_Comm world) { REAL(Comm_group)(world, &the_world_group); }
