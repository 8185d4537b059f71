// What goes from rank to rank, in C.
#include "probe/pmpi/c_parameters.h"
#include "probe/pmpi/names.h"
#include "probe/pmpi/pmpi.h"

static void EndPreparation(int result, const MPI_Request* request, uint16_t name, uint8_t does, MPI_Comm comm,
                           struct Amount amount, int peer) {
  if (result != MPI_SUCCESS) return;
  const struct RecorderOperation operation = {.communicator = PlaceOf(KEY(comm)),
                                              .peer = peer < 0 ? RECORD_NONE : (uint32_t)peer,
                                              .bytes = amount.bytes,
                                              .flags = kRecordPointToPoint,
                                              .name = name,
                                              .function = does,
                                              .type = amount.type};
  PrepareRequest(KEY(*request), &operation);
}

#define MESSAGE_OF(Name, Iname, Prepared, does, BUFFER, MORE, more)                                                    \
  EXPORT int MPI_##Name(BUFFER, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm MORE) {                 \
    if (PassesThrough()) return REAL(Name)(buffer, count, type, peer, tag, comm more);                                 \
    const RecorderTicket ticket =                                                                                      \
        BeginOperation(kName##Name, does, KEY(comm), COUNT(count, type), peer, kRecordPointToPoint | kRecordBlocking); \
    const int result = REAL(Name)(buffer, count, type, peer, tag, comm more);                                          \
    EndOperation(ticket);                                                                                              \
    return result;                                                                                                     \
  }                                                                                                                    \
  EXPORT int MPI_##Iname(BUFFER, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,                       \
                         MPI_Request* request) {                                                                       \
    if (PassesThrough()) return REAL(Iname)(buffer, count, type, peer, tag, comm, request);                            \
    const RecorderTicket ticket =                                                                                      \
        BeginOperation(kName##Iname, does, KEY(comm), COUNT(count, type), peer, kRecordPointToPoint);                  \
    const int result = REAL(Iname)(buffer, count, type, peer, tag, comm, request);                                     \
    EndCall(result == MPI_SUCCESS, KEY(*request), ticket);                                                             \
    return result;                                                                                                     \
  }                                                                                                                    \
  EXPORT int MPI_##Prepared(BUFFER, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,                    \
                            MPI_Request* request) {                                                                    \
    const int result = REAL(Prepared)(buffer, count, type, peer, tag, comm, request);                                  \
    if (!PassesThrough()) {                                                                                            \
      EndPreparation(result, request, kName##Prepared, does, comm, COUNT(count, type), peer);                          \
    }                                                                                                                  \
    return result;                                                                                                     \
  }
#define COMMA ,
#define MESSAGE_SEND(Name, name, NAME, Iname, iname, INAME, Prepared, prepared, PREPARED) \
  MESSAGE_OF(Name, Iname, Prepared, kRecordSend, const void* buffer, , )
#define MESSAGE_RECEIVE(Name, name, NAME, Iname, iname, INAME, Prepared, prepared, PREPARED) \
  MESSAGE_OF(Name, Iname, Prepared, kRecordReceive, void* buffer, COMMA MPI_Status* status, COMMA status)
#include "probe/pmpi/messages.def"

// Both directions, each for itself. The thread is in it as long as it is in the second.
static void BeginExchange(uint16_t name, MPI_Comm comm, struct Amount sent, int to, struct Amount received, int from,
                          RecorderTicket* tickets) {
  tickets[0] = BeginOperation(name, kRecordSend, KEY(comm), sent, to, kRecordPointToPoint | kRecordBlocking);
  tickets[1] = BeginOperation(name, kRecordReceive, KEY(comm), received, from, kRecordPointToPoint | kRecordBlocking);
}

EXPORT int MPI_Sendrecv(const void* send, int send_count, MPI_Datatype send_type, int to, int send_tag, void* receive,
                        int receive_count, MPI_Datatype receive_type, int from, int receive_tag, MPI_Comm comm,
                        MPI_Status* status) {
  if (PassesThrough()) {
    return REAL(Sendrecv)(send, send_count, send_type, to, send_tag, receive, receive_count, receive_type, from,
                          receive_tag, comm, status);
  }
  RecorderTicket tickets[2];
  BeginExchange(kNameSendrecv, comm, COUNT(send_count, send_type), to, COUNT(receive_count, receive_type), from,
                tickets);
  const int result = REAL(Sendrecv)(send, send_count, send_type, to, send_tag, receive, receive_count, receive_type,
                                    from, receive_tag, comm, status);
  EndOperation(tickets[0]);
  EndOperation(tickets[1]);
  return result;
}

EXPORT int MPI_Sendrecv_replace(void* buffer, int count, MPI_Datatype type, int to, int send_tag, int from,
                                int receive_tag, MPI_Comm comm, MPI_Status* status) {
  if (PassesThrough()) {
    return REAL(Sendrecv_replace)(buffer, count, type, to, send_tag, from, receive_tag, comm, status);
  }
  RecorderTicket tickets[2];
  const struct Amount amount = COUNT(count, type);
  BeginExchange(kNameSendrecv_replace, comm, amount, to, amount, from, tickets);
  const int result = REAL(Sendrecv_replace)(buffer, count, type, to, send_tag, from, receive_tag, comm, status);
  EndOperation(tickets[0]);
  EndOperation(tickets[1]);
  return result;
}

// They wait for a message and take none.
enum { kLooks = kRecordPointToPoint | kRecordBlocking | kRecordUncounted };

EXPORT int MPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status* status) {
  if (PassesThrough()) return REAL(Probe)(from, tag, comm, status);
  const RecorderTicket ticket = BeginOperation(kNameProbe, kRecordReceive, KEY(comm), NOTHING, from, kLooks);
  const int result = REAL(Probe)(from, tag, comm, status);
  EndOperation(ticket);
  return result;
}

EXPORT int MPI_Mprobe(int from, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
  if (PassesThrough()) return REAL(Mprobe)(from, tag, comm, message, status);
  const RecorderTicket ticket = BeginOperation(kNameMprobe, kRecordReceive, KEY(comm), NOTHING, from, kLooks);
  const int result = REAL(Mprobe)(from, tag, comm, message, status);
  EndOperation(ticket);
  return result;
}

// Who looks again and again is not outside.
EXPORT int MPI_Iprobe(int from, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  const int result = REAL(Iprobe)(from, tag, comm, flag, status);
  if (!PassesThrough()) RecorderLeave(the_recorder);
  return result;
}
