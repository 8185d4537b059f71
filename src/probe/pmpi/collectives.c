// The collectives in C, made of their table.
#include "probe/pmpi/c_parameters.h"
#include "probe/pmpi/names.h"
#include "probe/pmpi/pmpi.h"

#define COLLECTIVE(Name, name, NAME, Iname, iname, INAME, does, amount, root, arguments, ...)                  \
  EXPORT int MPI_##Name(__VA_ARGS__) {                                                                         \
    if (PassesThrough()) return REAL(Name) arguments;                                                          \
    const RecorderTicket ticket = BeginOperation(kName##Name, does, KEY(comm), amount, root, kRecordBlocking); \
    const int result = REAL(Name) arguments;                                                                   \
    EndOperation(ticket);                                                                                      \
    return result;                                                                                             \
  }                                                                                                            \
  EXPORT int MPI_##Iname(__VA_ARGS__, MPI_Request* request) {                                                  \
    if (PassesThrough()) return REAL(Iname)(UNWRAP arguments, request);                                        \
    const RecorderTicket ticket = BeginOperation(kName##Iname, does, KEY(comm), amount, root, 0);              \
    const int result = REAL(Iname)(UNWRAP arguments, request);                                                 \
    EndCall(result == MPI_SUCCESS, KEY(*request), ticket);                                                     \
    return result;                                                                                             \
  }

#include "probe/pmpi/collectives.def"
