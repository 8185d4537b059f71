// The Fortran names that don't lead to the C names which are wrapped.
//
//   OpenMPI   all of them: its Fortran library calls the names of C that tools don't wrap. A compiler's habit gives a
//             name one underscore, two or none; and the module mpi_f08 calls the library's inner name.
//   MPICH     those of the module mpi_f08 which pass no buffer, as MPI_Wait: these alone call such names of C. What
//   else
//             is wrapped here is not there, and nobody calls it.
//
// Handles are numbers there, arguments come by address, indices count from 1, and who does not want to know about an
// error may leave that argument out.
#include "probe/pmpi/names.h"
#include "probe/pmpi/pmpi.h"
#include "probe/pmpi/session.h"

#define ALIAS(symbol, name, ...) EXPORT void symbol(__VA_ARGS__) __attribute__((alias("Fortran_" #name)));
#ifdef OPEN_MPI
#define ALIASES(name, NAME, ...)           \
  ALIAS(mpi_##name, name, __VA_ARGS__)     \
  ALIAS(mpi_##name##_, name, __VA_ARGS__)  \
  ALIAS(mpi_##name##__, name, __VA_ARGS__) \
  ALIAS(MPI_##NAME, name, __VA_ARGS__)     \
  ALIAS(ompi_##name##_f, name, __VA_ARGS__)
#define NEXT_NAME(name) "mpi_" #name "_"
#define TO_COMMUNICATOR(x) REAL(Comm_f2c)(x)
#define TO_REQUEST(x) REAL(Request_f2c)(x)
#define TO_TYPE(x) REAL(Type_f2c)(x)
#else
#define ALIASES(name, NAME, ...) ALIAS(mpi_##name##_f08_, name, __VA_ARGS__)
#define NEXT_NAME(name) "mpi_" #name "_f08_"
#define TO_COMMUNICATOR(x) MPI_Comm_f2c(x)
#define TO_REQUEST(x) MPI_Request_f2c(x)
#define TO_TYPE(x) MPI_Type_f2c(x)
#endif

#define FORTRAN(name, NAME, ...)    \
  void Fortran_##name(__VA_ARGS__); \
  ALIASES(name, NAME, __VA_ARGS__)  \
  void Fortran_##name(__VA_ARGS__)
#define NEXT(name)                                              \
  ({                                                            \
    static void* place;                                         \
    (__typeof__(&Fortran_##name))Real(&place, NEXT_NAME(name)); \
  })

#define COMMUNICATOR_KEY(x) KEY(TO_COMMUNICATOR(*(x)))
#define REQUEST_KEY(x) KEY(TO_REQUEST(*(x)))
MPI_Comm CommunicatorOfFortran(MPI_Fint handle) { return TO_COMMUNICATOR(handle); }
static bool HasWorked(const MPI_Fint* error) { return !error || *error == MPI_SUCCESS; }

#define COUNT(count, type) AmountOf(*(count), KEY(TO_TYPE(*(type))), false)
#define VARIES(count, type) AmountOf(*(count), KEY(TO_TYPE(*(type))), true)
#define NOTHING ((struct Amount){0, kRecordOtherType, true})
#define ROOT(root) ToPeer(*(root))

#define IN(x) void* x
#define OUT(x) void* x
#define INT(x) MPI_Fint* x
#define INTS(x) MPI_Fint* x
#define PLACES(x) MPI_Aint* x
#define TYPE(x) MPI_Fint* x
#define TYPES(x) MPI_Fint* x
#define OP(x) MPI_Fint* x
#define COMM(x) MPI_Fint* x
#define MADE(x) MPI_Fint* x
#define GROUP(x) MPI_Fint* x
#define INFO(x) MPI_Fint* x
#define WINDOW(x) MPI_Fint* x
#define WINDOW_OUT(x) MPI_Fint* x
#define FILE_IN(x) MPI_Fint* x
#define FILE_OUT(x) MPI_Fint* x
#define OFFSET(x) MPI_Offset* x
#define MESSAGE(x) MPI_Fint* x
#define STATUS(x) MPI_Fint* x

#define COLLECTIVE(Name, name, NAME, Iname, iname, INAME, does, amount, root, arguments, ...)                  \
  FORTRAN(name, NAME, __VA_ARGS__, MPI_Fint* error) {                                                          \
    if (PassesThrough()) return NEXT(name)(UNWRAP arguments, error);                                           \
    const RecorderTicket ticket =                                                                              \
        BeginOperation(kName##Name, does, COMMUNICATOR_KEY(comm), amount, root, kRecordBlocking);              \
    NEXT(name)(UNWRAP arguments, error);                                                                       \
    EndOperation(ticket);                                                                                      \
  }                                                                                                            \
  FORTRAN(iname, INAME, __VA_ARGS__, MPI_Fint* request, MPI_Fint* error) {                                     \
    if (PassesThrough()) return NEXT(iname)(UNWRAP arguments, request, error);                                 \
    const RecorderTicket ticket = BeginOperation(kName##Iname, does, COMMUNICATOR_KEY(comm), amount, root, 0); \
    NEXT(iname)(UNWRAP arguments, request, error);                                                             \
    EndCall(HasWorked(error), REQUEST_KEY(request), ticket);                                                   \
  }
#include "probe/pmpi/collectives.def"

#define CREATION(Name, name, NAME, arguments, ...)                                                                     \
  FORTRAN(name, NAME, __VA_ARGS__, MPI_Fint* error) {                                                                  \
    if (PassesThrough()) return NEXT(name)(UNWRAP arguments, error);                                                   \
    const uint64_t creation = NextCreation(COMMUNICATOR_KEY(comm));                                                    \
    const RecorderTicket ticket = BeginOperation(kName##Name, kRecordOtherCollective, COMMUNICATOR_KEY(comm), NOTHING, \
                                                 NO_ROOT, kRecordBlocking);                                            \
    NEXT(name)(UNWRAP arguments, error);                                                                               \
    if (HasWorked(error)) RegisterMade(TO_COMMUNICATOR(*made), creation);                                              \
    EndOperation(ticket);                                                                                              \
  }
#include "probe/pmpi/creations.def"

#define ELSEWHERE(Name, name, NAME, arguments, ...)                                                                    \
  FORTRAN(name, NAME, __VA_ARGS__, MPI_Fint* error) {                                                                  \
    if (PassesThrough()) return NEXT(name)(UNWRAP arguments, error);                                                   \
    const RecorderTicket ticket =                                                                                      \
        BeginOperation(kName##Name, kRecordOtherCollective, the_null_communicator, NOTHING, NO_ROOT, kRecordBlocking); \
    NEXT(name)(UNWRAP arguments, error);                                                                               \
    EndOperation(ticket);                                                                                              \
  }
#include "probe/pmpi/elsewhere.def"

#define FIVE void *buffer, MPI_Fint *count, MPI_Fint *type, MPI_Fint *peer, MPI_Fint *tag, MPI_Fint *comm
#define MESSAGE_OF(Name, lower, NAME, Iname, iname, INAME, Prepared, prepared, PREPARED, does, MORE, more)       \
  FORTRAN(lower, NAME, FIVE MORE, MPI_Fint* error) {                                                             \
    if (PassesThrough()) return NEXT(lower)(buffer, count, type, peer, tag, comm more, error);                   \
    const RecorderTicket ticket = BeginOperation(kName##Name, does, COMMUNICATOR_KEY(comm), COUNT(count, type),  \
                                                 ToPeer(*peer), kRecordPointToPoint | kRecordBlocking);          \
    NEXT(lower)(buffer, count, type, peer, tag, comm more, error);                                               \
    EndOperation(ticket);                                                                                        \
  }                                                                                                              \
  FORTRAN(iname, INAME, FIVE, MPI_Fint* request, MPI_Fint* error) {                                              \
    if (PassesThrough()) return NEXT(iname)(buffer, count, type, peer, tag, comm, request, error);               \
    const RecorderTicket ticket = BeginOperation(kName##Iname, does, COMMUNICATOR_KEY(comm), COUNT(count, type), \
                                                 ToPeer(*peer), kRecordPointToPoint);                            \
    NEXT(iname)(buffer, count, type, peer, tag, comm, request, error);                                           \
    EndCall(HasWorked(error), REQUEST_KEY(request), ticket);                                                     \
  }                                                                                                              \
  FORTRAN(prepared, PREPARED, FIVE, MPI_Fint* request, MPI_Fint* error) {                                        \
    NEXT(prepared)(buffer, count, type, peer, tag, comm, request, error);                                        \
    if (PassesThrough() || !HasWorked(error)) return;                                                            \
    const struct Amount amount = COUNT(count, type);                                                             \
    const struct RecorderOperation operation = {.communicator = PlaceOf(COMMUNICATOR_KEY(comm)),                 \
                                                .peer = *peer < 0 ? RECORD_NONE : (uint32_t)*peer,               \
                                                .bytes = amount.bytes,                                           \
                                                .flags = kRecordPointToPoint,                                    \
                                                .name = kName##Prepared,                                         \
                                                .function = does,                                                \
                                                .type = amount.type};                                            \
    PrepareRequest(REQUEST_KEY(request), &operation);                                                            \
  }
#define COMMA ,
#define MESSAGE_SEND(...) MESSAGE_OF(__VA_ARGS__, kRecordSend, , )
#define MESSAGE_RECEIVE(...) MESSAGE_OF(__VA_ARGS__, kRecordReceive, COMMA MPI_Fint* status, COMMA status)
#include "probe/pmpi/messages.def"

FORTRAN(sendrecv, SENDRECV, void* send, MPI_Fint* send_count, MPI_Fint* send_type, MPI_Fint* to, MPI_Fint* send_tag,
        void* receive, MPI_Fint* receive_count, MPI_Fint* receive_type, MPI_Fint* from, MPI_Fint* receive_tag,
        MPI_Fint* comm, MPI_Fint* status, MPI_Fint* error) {
  if (PassesThrough()) {
    return NEXT(sendrecv)(send, send_count, send_type, to, send_tag, receive, receive_count, receive_type, from,
                          receive_tag, comm, status, error);
  }
  enum { kFlags = kRecordPointToPoint | kRecordBlocking };
  const uint64_t key = COMMUNICATOR_KEY(comm);
  const RecorderTicket sent =
      BeginOperation(kNameSendrecv, kRecordSend, key, COUNT(send_count, send_type), ToPeer(*to), kFlags);
  const RecorderTicket received =
      BeginOperation(kNameSendrecv, kRecordReceive, key, COUNT(receive_count, receive_type), ToPeer(*from), kFlags);
  NEXT(sendrecv)(send, send_count, send_type, to, send_tag, receive, receive_count, receive_type, from, receive_tag,
                 comm, status, error);
  EndOperation(sent);
  EndOperation(received);
}

FORTRAN(sendrecv_replace, SENDRECV_REPLACE, void* buffer, MPI_Fint* count, MPI_Fint* type, MPI_Fint* to,
        MPI_Fint* send_tag, MPI_Fint* from, MPI_Fint* receive_tag, MPI_Fint* comm, MPI_Fint* status, MPI_Fint* error) {
  if (PassesThrough()) {
    return NEXT(sendrecv_replace)(buffer, count, type, to, send_tag, from, receive_tag, comm, status, error);
  }
  enum { kFlags = kRecordPointToPoint | kRecordBlocking };
  const uint64_t key = COMMUNICATOR_KEY(comm);
  const struct Amount amount = COUNT(count, type);
  const RecorderTicket sent = BeginOperation(kNameSendrecv_replace, kRecordSend, key, amount, ToPeer(*to), kFlags);
  const RecorderTicket received =
      BeginOperation(kNameSendrecv_replace, kRecordReceive, key, amount, ToPeer(*from), kFlags);
  NEXT(sendrecv_replace)(buffer, count, type, to, send_tag, from, receive_tag, comm, status, error);
  EndOperation(sent);
  EndOperation(received);
}

FORTRAN(probe, PROBE, MPI_Fint* from, MPI_Fint* tag, MPI_Fint* comm, MPI_Fint* status, MPI_Fint* error) {
  if (PassesThrough()) return NEXT(probe)(from, tag, comm, status, error);
  const RecorderTicket ticket = BeginOperation(kNameProbe, kRecordReceive, COMMUNICATOR_KEY(comm), NOTHING,
                                               ToPeer(*from), kRecordPointToPoint | kRecordBlocking | kRecordUncounted);
  NEXT(probe)(from, tag, comm, status, error);
  EndOperation(ticket);
}

FORTRAN(mprobe, MPROBE, MPI_Fint* from, MPI_Fint* tag, MPI_Fint* comm, MPI_Fint* message, MPI_Fint* status,
        MPI_Fint* error) {
  if (PassesThrough()) return NEXT(mprobe)(from, tag, comm, message, status, error);
  const RecorderTicket ticket = BeginOperation(kNameMprobe, kRecordReceive, COMMUNICATOR_KEY(comm), NOTHING,
                                               ToPeer(*from), kRecordPointToPoint | kRecordBlocking | kRecordUncounted);
  NEXT(mprobe)(from, tag, comm, message, status, error);
  EndOperation(ticket);
}

FORTRAN(iprobe, IPROBE, MPI_Fint* from, MPI_Fint* tag, MPI_Fint* comm, MPI_Fint* flag, MPI_Fint* status,
        MPI_Fint* error) {
  NEXT(iprobe)(from, tag, comm, flag, status, error);
  if (!PassesThrough()) RecorderLeave(the_recorder);
}

static int TakeAll(MPI_Fint count, const MPI_Fint* requests, struct Taken* taken) {
  for (MPI_Fint i = 0; count > kTakenMax && i < count; ++i) FreeRequest(REQUEST_KEY(&requests[i]));
  for (MPI_Fint i = 0; count <= kTakenMax && i < count; ++i) {
    taken[i] = TakeRequest(REQUEST_KEY(&requests[i]));
    StartTaken(&taken[i]);
  }
  return count > kTakenMax ? 0 : count;
}

FORTRAN(wait, WAIT, MPI_Fint* request, MPI_Fint* status, MPI_Fint* error) {
  if (PassesThrough()) return NEXT(wait)(request, status, error);
  struct Taken taken;
  EnterWait(kNameWait);
  const int taken_count = TakeAll(1, request, &taken);
  NEXT(wait)(request, status, error);
  EndAll(taken_count, &taken, true);
  LeaveWait();
}

FORTRAN(waitall, WAITALL, MPI_Fint* count, MPI_Fint* requests, MPI_Fint* statuses, MPI_Fint* error) {
  if (PassesThrough()) return NEXT(waitall)(count, requests, statuses, error);
  struct Taken taken[kTakenMax];
  EnterWait(kNameWaitall);
  const int taken_count = TakeAll(*count, requests, taken);
  NEXT(waitall)(count, requests, statuses, error);
  EndAll(taken_count, taken, true);
  LeaveWait();
}

FORTRAN(waitany, WAITANY, MPI_Fint* count, MPI_Fint* requests, MPI_Fint* index, MPI_Fint* status, MPI_Fint* error) {
  if (PassesThrough()) return NEXT(waitany)(count, requests, index, status, error);
  struct Taken taken[kTakenMax];
  EnterWait(kNameWaitany);
  const int taken_count = TakeAll(*count, requests, taken);
  NEXT(waitany)(count, requests, index, status, error);
  EndSome(taken_count, taken, 1, index, 1);
  LeaveWait();
}

FORTRAN(waitsome, WAITSOME, MPI_Fint* count, MPI_Fint* requests, MPI_Fint* done, MPI_Fint* indices, MPI_Fint* statuses,
        MPI_Fint* error) {
  if (PassesThrough()) return NEXT(waitsome)(count, requests, done, indices, statuses, error);
  struct Taken taken[kTakenMax];
  EnterWait(kNameWaitsome);
  const int taken_count = TakeAll(*count, requests, taken);
  NEXT(waitsome)(count, requests, done, indices, statuses, error);
  EndSome(taken_count, taken, *done == MPI_UNDEFINED ? 0 : *done, indices, 1);
  LeaveWait();
}

FORTRAN(test, TEST, MPI_Fint* request, MPI_Fint* flag, MPI_Fint* status, MPI_Fint* error) {
  if (PassesThrough()) return NEXT(test)(request, flag, status, error);
  struct Taken taken;
  ++the_depth;
  const int taken_count = TakeAll(1, request, &taken);
  NEXT(test)(request, flag, status, error);
  EndAll(taken_count, &taken, *flag != 0 || !HasWorked(error));
  LeaveWait();
}

FORTRAN(testall, TESTALL, MPI_Fint* count, MPI_Fint* requests, MPI_Fint* flag, MPI_Fint* statuses, MPI_Fint* error) {
  if (PassesThrough()) return NEXT(testall)(count, requests, flag, statuses, error);
  struct Taken taken[kTakenMax];
  ++the_depth;
  const int taken_count = TakeAll(*count, requests, taken);
  NEXT(testall)(count, requests, flag, statuses, error);
  EndAll(taken_count, taken, *flag != 0 || !HasWorked(error));
  LeaveWait();
}

FORTRAN(testany, TESTANY, MPI_Fint* count, MPI_Fint* requests, MPI_Fint* index, MPI_Fint* flag, MPI_Fint* status,
        MPI_Fint* error) {
  if (PassesThrough()) return NEXT(testany)(count, requests, index, flag, status, error);
  struct Taken taken[kTakenMax];
  ++the_depth;
  const int taken_count = TakeAll(*count, requests, taken);
  NEXT(testany)(count, requests, index, flag, status, error);
  EndSome(taken_count, taken, *flag != 0 ? 1 : 0, index, 1);
  LeaveWait();
}

FORTRAN(testsome, TESTSOME, MPI_Fint* count, MPI_Fint* requests, MPI_Fint* done, MPI_Fint* indices, MPI_Fint* statuses,
        MPI_Fint* error) {
  if (PassesThrough()) return NEXT(testsome)(count, requests, done, indices, statuses, error);
  struct Taken taken[kTakenMax];
  ++the_depth;
  const int taken_count = TakeAll(*count, requests, taken);
  NEXT(testsome)(count, requests, done, indices, statuses, error);
  EndSome(taken_count, taken, *done == MPI_UNDEFINED ? 0 : *done, indices, 1);
  LeaveWait();
}

FORTRAN(start, START, MPI_Fint* request, MPI_Fint* error) {
  if (!PassesThrough()) StartPrepared(REQUEST_KEY(request));
  NEXT(start)(request, error);
}

FORTRAN(startall, STARTALL, MPI_Fint* count, MPI_Fint* requests, MPI_Fint* error) {
  for (MPI_Fint i = 0; i < *count && !PassesThrough(); ++i) StartPrepared(REQUEST_KEY(&requests[i]));
  NEXT(startall)(count, requests, error);
}

FORTRAN(request_free, REQUEST_FREE, MPI_Fint* request, MPI_Fint* error) {
  if (!PassesThrough()) FreeRequest(REQUEST_KEY(request));
  NEXT(request_free)(request, error);
}

FORTRAN(comm_create_group, COMM_CREATE_GROUP, MPI_Fint* comm, MPI_Fint* group, MPI_Fint* tag, MPI_Fint* made,
        MPI_Fint* error) {
  if (PassesThrough()) return NEXT(comm_create_group)(comm, group, tag, made, error);
  const RecorderTicket ticket = BeginOperation(kNameComm_create_group, kRecordOtherCollective, the_null_communicator,
                                               NOTHING, NO_ROOT, kRecordBlocking);
  NEXT(comm_create_group)(comm, group, tag, made, error);
  if (HasWorked(error)) RegisterMadeByGroup(TO_COMMUNICATOR(*made), COMMUNICATOR_KEY(comm), *tag);
  EndOperation(ticket);
}

#define REMOVAL(Name, name, NAME)                                                                    \
  FORTRAN(name, NAME, MPI_Fint* comm, MPI_Fint* error) {                                             \
    if (PassesThrough()) return NEXT(name)(comm, error);                                             \
    const uint64_t key = COMMUNICATOR_KEY(comm);                                                     \
    const RecorderTicket ticket =                                                                    \
        BeginOperation(kName##Name, kRecordOtherCollective, key, NOTHING, NO_ROOT, kRecordBlocking); \
    ForgetCommunicator(key);                                                                         \
    NEXT(name)(comm, error);                                                                         \
    EndOperation(ticket);                                                                            \
  }
REMOVAL(Comm_free, comm_free, COMM_FREE)
REMOVAL(Comm_disconnect, comm_disconnect, COMM_DISCONNECT)

FORTRAN(intercomm_merge, INTERCOMM_MERGE, MPI_Fint* comm, MPI_Fint* high, MPI_Fint* made, MPI_Fint* error) {
  if (PassesThrough()) return NEXT(intercomm_merge)(comm, high, made, error);
  const RecorderTicket ticket = BeginOperation(kNameIntercomm_merge, kRecordOtherCollective, the_null_communicator,
                                               NOTHING, NO_ROOT, kRecordBlocking);
  NEXT(intercomm_merge)(comm, high, made, error);
  if (HasWorked(error)) RegisterMadeByGroup(TO_COMMUNICATOR(*made), the_null_communicator, 0);
  EndOperation(ticket);
}

FORTRAN(comm_idup, COMM_IDUP, MPI_Fint* comm, MPI_Fint* made, MPI_Fint* request, MPI_Fint* error) {
  if (PassesThrough()) return NEXT(comm_idup)(comm, made, request, error);
  const uint64_t creation = NextCreation(COMMUNICATOR_KEY(comm));
  const RecorderTicket ticket =
      BeginOperation(kNameComm_idup, kRecordOtherCollective, COMMUNICATOR_KEY(comm), NOTHING, NO_ROOT, 0);
  NEXT(comm_idup)(comm, made, request, error);
  if (HasWorked(error)) AwaitCommunicator(ticket, NULL, made, creation);
  EndCall(HasWorked(error), REQUEST_KEY(request), ticket);
}

FORTRAN(init, INIT, MPI_Fint* error) {
  if (the_recorder || the_depth > 0) return NEXT(init)(error);
  struct Recorder* recorder = BeginSession();
  NEXT(init)(error);
  EndBeginning(recorder, HasWorked(error) ? MPI_SUCCESS : *error);
}

FORTRAN(init_thread, INIT_THREAD, MPI_Fint* required, MPI_Fint* provided, MPI_Fint* error) {
  if (the_recorder || the_depth > 0) return NEXT(init_thread)(required, provided, error);
  struct Recorder* recorder = BeginSession();
  NEXT(init_thread)(required, provided, error);
  EndBeginning(recorder, HasWorked(error) ? MPI_SUCCESS : *error);
}

FORTRAN(finalize, FINALIZE, MPI_Fint* error) {
  if (PassesThrough()) return NEXT(finalize)(error);
  const RecorderTicket ticket = BeginEnding();
  NEXT(finalize)(error);
  EndSession(ticket);
}
