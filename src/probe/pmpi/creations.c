// What makes, names and frees communicators, in C.
#include "probe/pmpi/c_parameters.h"
#include "probe/pmpi/names.h"
#include "probe/pmpi/pmpi.h"

#define CREATION(Name, name, NAME, arguments, ...)                                                         \
  EXPORT int MPI_##Name(__VA_ARGS__) {                                                                     \
    if (PassesThrough()) return REAL(Name) arguments;                                                      \
    const uint64_t creation = NextCreation(KEY(comm));                                                     \
    const RecorderTicket ticket =                                                                          \
        BeginOperation(kName##Name, kRecordOtherCollective, KEY(comm), NOTHING, NO_ROOT, kRecordBlocking); \
    const int result = REAL(Name) arguments;                                                               \
    if (result == MPI_SUCCESS) RegisterMade(*made, creation);                                              \
    EndOperation(ticket);                                                                                  \
    return result;                                                                                         \
  }
#include "probe/pmpi/creations.def"

EXPORT int MPI_Comm_idup(MPI_Comm comm, MPI_Comm* made, MPI_Request* request) {
  if (PassesThrough()) return REAL(Comm_idup)(comm, made, request);
  const uint64_t creation = NextCreation(KEY(comm));
  const RecorderTicket ticket = BeginOperation(kNameComm_idup, kRecordOtherCollective, KEY(comm), NOTHING, NO_ROOT, 0);
  const int result = REAL(Comm_idup)(comm, made, request);
  if (result == MPI_SUCCESS) {
    AwaitCommunicator(ticket, made, NULL, creation);
    BindRequest(KEY(*request), ticket);
    --the_depth;
  } else {
    EndOperation(ticket);
  }
  return result;
}

EXPORT int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made) {
  if (PassesThrough()) return REAL(Comm_create_group)(comm, group, tag, made);
  const RecorderTicket ticket = BeginOperation(kNameComm_create_group, kRecordOtherCollective, the_null_communicator,
                                               NOTHING, NO_ROOT, kRecordBlocking);
  const int result = REAL(Comm_create_group)(comm, group, tag, made);
  if (result == MPI_SUCCESS) RegisterMadeByGroup(*made, KEY(comm), tag);
  EndOperation(ticket);
  return result;
}

EXPORT int MPI_Intercomm_merge(MPI_Comm comm, int high, MPI_Comm* made) {
  if (PassesThrough()) return REAL(Intercomm_merge)(comm, high, made);
  const RecorderTicket ticket = BeginOperation(kNameIntercomm_merge, kRecordOtherCollective, the_null_communicator,
                                               NOTHING, NO_ROOT, kRecordBlocking);
  const int result = REAL(Intercomm_merge)(comm, high, made);
  if (result == MPI_SUCCESS) RegisterMadeByGroup(*made, the_null_communicator, 0);
  EndOperation(ticket);
  return result;
}

// Forgotten before its handle may be that of another.
#define REMOVAL(Name)                                                                                \
  EXPORT int MPI_##Name(MPI_Comm* comm) {                                                            \
    if (PassesThrough()) return REAL(Name)(comm);                                                    \
    const uint64_t key = KEY(*comm);                                                                 \
    const RecorderTicket ticket =                                                                    \
        BeginOperation(kName##Name, kRecordOtherCollective, key, NOTHING, NO_ROOT, kRecordBlocking); \
    ForgetCommunicator(key);                                                                         \
    const int result = REAL(Name)(comm);                                                             \
    EndOperation(ticket);                                                                            \
    return result;                                                                                   \
  }
REMOVAL(Comm_free)
REMOVAL(Comm_disconnect)

EXPORT int MPI_Comm_set_name(MPI_Comm comm, const char* name) {
  const int result = REAL(Comm_set_name)(comm, name);
  if (!PassesThrough()) RecorderNameCommunicator(the_recorder, PlaceOf(KEY(comm)), name);
  return result;
}
