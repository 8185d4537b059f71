// What the files of the PMPI library share.
//
// The library is loaded before that of MPI, has functions of the same names, notes what is called and calls the next
// one of that name. That is looked up when it is needed and not by the linker: the library is loaded into every process
// that a job starts, of which most know nothing of MPI; and a Python interpreter keeps its MPI to itself, where no
// linker would find it. Constants such as MPI_COMM_WORLD are symbols too, of one of the libraries, so they are looked
// up as well.
#ifndef AIMASTER_PROBE_PMPI_PMPI_H_
#define AIMASTER_PROBE_PMPI_PMPI_H_

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "probe/pmpi/handle_table.h"
#include "probe/recorder.h"

#define EXPORT __attribute__((visibility("default")))
#define UNWRAP(...) __VA_ARGS__

// Handles are pointers in one library and numbers in the other.
#define KEY(handle) ((uint64_t)(uintptr_t)(handle))

extern struct Recorder* the_recorder;  // NULL: nothing is recorded, all calls pass through

// How deep this thread is in functions of ours: what a library calls inside of them is not counted.
extern __thread int the_depth;
static inline bool PassesThrough(void) { return !the_recorder || the_depth > 0; }

// The next function of this name. Each place in the code remembers its own.
void* FindReal(void** place, const char* name);
static inline void* Real(void** place, const char* name) {
  void* found = __atomic_load_n(place, __ATOMIC_RELAXED);
  return __builtin_expect(found != NULL, 1) ? found : FindReal(place, name);
}
#define REAL(name)                                        \
  ({                                                      \
    static void* place;                                   \
    (__typeof__(&PMPI_##name))Real(&place, "MPI_" #name); \
  })

void* FindConstant(const char* name);  // NULL: there is none

// session.c: keys of constants.
extern uint64_t the_null_communicator, the_null_request;

// types.c
void LearnTypes(void);
struct Amount {
  uint64_t bytes;
  uint8_t type;
  bool varies;
};
struct Amount AmountOf(int64_t count, uint64_t type, bool varies);

// communicators.c
uint32_t PlaceOf(uint64_t communicator);  // RECORD_NONE: it is not recorded
// Of a communicator, before it makes another one: what the id of that will depend on. 0: it will not be recorded.
uint64_t NextCreation(uint64_t parent);
void RegisterMade(MPI_Comm made, uint64_t creation);
// Not all members of the parent took part.
void RegisterMadeByGroup(MPI_Comm made, uint64_t parent, int tag);
void ForgetCommunicator(uint64_t communicator);

// requests.c
struct Taken {
  uint64_t key, value;
};
void BindRequest(uint64_t request, RecorderTicket ticket);
void PrepareRequest(uint64_t request, const struct RecorderOperation* operation);
void StartPrepared(uint64_t request);
void FreeRequest(uint64_t request);
// One made by MPI_Comm_idup: the communicator is there when the request has completed, where the program asked for it,
// in C or in Fortran.
void AwaitCommunicator(RecorderTicket ticket, const MPI_Comm* made, const MPI_Fint* made_in_fortran, uint64_t creation);
MPI_Comm CommunicatorOfFortran(MPI_Fint handle);
// Before a call that may complete a request, and after it.
struct Taken TakeRequest(uint64_t request);
void StartTaken(const struct Taken* taken);
void CompleteTaken(const struct Taken* taken);
void PutBackTaken(const struct Taken* taken);
// More are not open at a time. What is waited for in larger arrays is given up: that is counted, and blames nobody.
enum { kTakenMax = kRecordOperations };
void EndAll(int taken_count, struct Taken* taken, bool are_complete);
// `first` is the number of the first index: 0 in C, 1 in Fortran.
void EndSome(int taken_count, struct Taken* taken, int complete_count, const int* indices, int first);
void EnterWait(uint16_t name);
void LeaveWait(void);
// The end of a call that begins an operation and does not wait for it.
void EndCall(bool is_begun, uint64_t request, RecorderTicket ticket);

// calls.c: an operation's beginning and end, with this thread's depth.
RecorderTicket BeginOperation(uint16_t name, uint8_t function, uint64_t communicator, struct Amount amount, int peer,
                              uint32_t flags);
void EndOperation(RecorderTicket ticket);

static inline int ToPeer(int rank) { return rank < 0 ? -1 : rank; }
#define NO_ROOT (-1)

#endif  // AIMASTER_PROBE_PMPI_PMPI_H_
