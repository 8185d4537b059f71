// The beginning and the end of MPI in this process: between them there is a record.
#include "probe/pmpi/session.h"
#include "probe/pmpi/c_parameters.h"
#include "probe/pmpi/names.h"
#include "probe/pmpi/pmpi.h"

uint64_t the_null_communicator, the_null_request;

#ifdef OPEN_MPI
#define CONSTANT(handle, symbol) KEY(FindConstant(symbol))
#else
#define CONSTANT(handle, symbol) KEY(handle)
#endif

static MPI_Comm the_world;

// Before the library begins, so that who hangs there has a record too.
struct Recorder* BeginSession(void) {
  ++the_depth;
  return RecorderOpen(kRecordMpi, kFunctionTexts, kFunctionNames);
}

void EndBeginning(struct Recorder* recorder, int result) {
  --the_depth;
  if (!recorder || result != MPI_SUCCESS) return;
  the_null_communicator = CONSTANT(MPI_COMM_NULL, "ompi_mpi_comm_null");
  the_null_request = CONSTANT(MPI_REQUEST_NULL, "ompi_request_null");
  the_world = (MPI_Comm)(uintptr_t)CONSTANT(MPI_COMM_WORLD, "ompi_mpi_comm_world");
  const MPI_Comm self = (MPI_Comm)(uintptr_t)CONSTANT(MPI_COMM_SELF, "ompi_mpi_comm_self");
  if (KEY(the_world) == 0 || KEY(self) == 0 || the_null_communicator == 0 || the_null_request == 0) return;
  int rank = 0, size = 0;
  REAL(Comm_rank)(the_world, &rank);
  REAL(Comm_size)(the_world, &size);
  LearnTypes();
  LearnWorldGroup(the_world);
  the_recorder = recorder;
  RecorderSetWorld(recorder, (uint32_t)rank, (uint32_t)size);
  RegisterCommunicator(the_world, "MPI_COMM_WORLD");
  if (size > 1) RegisterCommunicator(self, "MPI_COMM_SELF");
}

EXPORT int MPI_Init(int* argc, char*** argv) {
  if (the_recorder || the_depth > 0) return REAL(Init)(argc, argv);
  struct Recorder* recorder = BeginSession();
  const int result = REAL(Init)(argc, argv);
  EndBeginning(recorder, result);
  return result;
}

EXPORT int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  if (the_recorder || the_depth > 0) return REAL(Init_thread)(argc, argv, required, provided);
  struct Recorder* recorder = BeginSession();
  const int result = REAL(Init_thread)(argc, argv, required, provided);
  EndBeginning(recorder, result);
  return result;
}

// All wait for all in it.
RecorderTicket BeginEnding(void) {
  ++the_depth;
  const struct RecorderOperation operation = {.communicator = PlaceOf(KEY(the_world)),
                                              .peer = RECORD_NONE,
                                              .flags = kRecordBlocking | kRecordSizeVaries,
                                              .name = kNameFinalize,
                                              .function = kRecordOtherCollective};
  return RecorderBegin(the_recorder, &operation);
}

void EndSession(RecorderTicket ticket) {
  EndOperation(ticket);
  RecorderFinish(the_recorder);
  the_recorder = NULL;
}

EXPORT int MPI_Finalize(void) {
  if (PassesThrough()) return REAL(Finalize)();
  const RecorderTicket ticket = BeginEnding();
  const int result = REAL(Finalize)();
  EndSession(ticket);
  return result;
}
