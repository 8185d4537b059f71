// What starts requests and asks for their ends, in C. A request is taken out of our table before the call in which it
// may complete, since its handle may be given to another thread before that call returns.
#include "probe/pmpi/names.h"
#include "probe/pmpi/pmpi.h"

static int TakeAll(int count, const MPI_Request* requests, struct Taken* taken) {
  if (count > kTakenMax) {
    for (int i = 0; i < count; ++i) FreeRequest(KEY(requests[i]));
    return 0;
  }
  for (int i = 0; i < count; ++i) {
    taken[i] = TakeRequest(KEY(requests[i]));
    StartTaken(&taken[i]);
  }
  return count;
}

EXPORT int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  if (PassesThrough()) return REAL(Wait)(request, status);
  struct Taken taken = TakeRequest(KEY(*request));
  EnterWait(kNameWait);
  StartTaken(&taken);
  const int result = REAL(Wait)(request, status);
  CompleteTaken(&taken);
  LeaveWait();
  return result;
}

EXPORT int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  if (PassesThrough()) return REAL(Waitall)(count, requests, statuses);
  struct Taken taken[kTakenMax];
  EnterWait(kNameWaitall);
  const int taken_count = TakeAll(count, requests, taken);
  const int result = REAL(Waitall)(count, requests, statuses);
  EndAll(taken_count, taken, true);
  LeaveWait();
  return result;
}

EXPORT int MPI_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  if (PassesThrough()) return REAL(Waitany)(count, requests, index, status);
  struct Taken taken[kTakenMax];
  EnterWait(kNameWaitany);
  const int taken_count = TakeAll(count, requests, taken);
  const int result = REAL(Waitany)(count, requests, index, status);
  EndSome(taken_count, taken, 1, index, 0);
  LeaveWait();
  return result;
}

EXPORT int MPI_Waitsome(int count, MPI_Request requests[], int* done, int indices[], MPI_Status statuses[]) {
  if (PassesThrough()) return REAL(Waitsome)(count, requests, done, indices, statuses);
  struct Taken taken[kTakenMax];
  EnterWait(kNameWaitsome);
  const int taken_count = TakeAll(count, requests, taken);
  const int result = REAL(Waitsome)(count, requests, done, indices, statuses);
  EndSome(taken_count, taken, *done == MPI_UNDEFINED ? 0 : *done, indices, 0);
  LeaveWait();
  return result;
}

EXPORT int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  if (PassesThrough()) return REAL(Test)(request, flag, status);
  struct Taken taken = TakeRequest(KEY(*request));
  StartTaken(&taken);
  ++the_depth;
  const int result = REAL(Test)(request, flag, status);
  EndAll(1, &taken, *flag || result != MPI_SUCCESS);
  LeaveWait();
  return result;
}

EXPORT int MPI_Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  if (PassesThrough()) return REAL(Testall)(count, requests, flag, statuses);
  struct Taken taken[kTakenMax];
  const int taken_count = TakeAll(count, requests, taken);
  ++the_depth;
  const int result = REAL(Testall)(count, requests, flag, statuses);
  EndAll(taken_count, taken, *flag || result != MPI_SUCCESS);
  LeaveWait();
  return result;
}

EXPORT int MPI_Testany(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
  if (PassesThrough()) return REAL(Testany)(count, requests, index, flag, status);
  struct Taken taken[kTakenMax];
  const int taken_count = TakeAll(count, requests, taken);
  ++the_depth;
  const int result = REAL(Testany)(count, requests, index, flag, status);
  EndSome(taken_count, taken, *flag ? 1 : 0, index, 0);
  LeaveWait();
  return result;
}

EXPORT int MPI_Testsome(int count, MPI_Request requests[], int* done, int indices[], MPI_Status statuses[]) {
  if (PassesThrough()) return REAL(Testsome)(count, requests, done, indices, statuses);
  struct Taken taken[kTakenMax];
  const int taken_count = TakeAll(count, requests, taken);
  ++the_depth;
  const int result = REAL(Testsome)(count, requests, done, indices, statuses);
  EndSome(taken_count, taken, *done == MPI_UNDEFINED ? 0 : *done, indices, 0);
  LeaveWait();
  return result;
}

EXPORT int MPI_Start(MPI_Request* request) {
  if (!PassesThrough()) StartPrepared(KEY(*request));
  return REAL(Start)(request);
}

EXPORT int MPI_Startall(int count, MPI_Request requests[]) {
  for (int i = 0; i < count && !PassesThrough(); ++i) StartPrepared(KEY(requests[i]));
  return REAL(Startall)(count, requests);
}

EXPORT int MPI_Request_free(MPI_Request* request) {
  if (!PassesThrough()) FreeRequest(KEY(*request));
  return REAL(Request_free)(request);
}
