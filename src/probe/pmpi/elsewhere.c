// Calls of which nothing is recorded but that the process is in one.
#include "probe/pmpi/c_parameters.h"
#include "probe/pmpi/names.h"
#include "probe/pmpi/pmpi.h"

#define ELSEWHERE(Name, name, NAME, arguments, ...)                                                                    \
  EXPORT int MPI_##Name(__VA_ARGS__) {                                                                                 \
    if (PassesThrough()) return REAL(Name) arguments;                                                                  \
    const RecorderTicket ticket =                                                                                      \
        BeginOperation(kName##Name, kRecordOtherCollective, the_null_communicator, NOTHING, NO_ROOT, kRecordBlocking); \
    const int result = REAL(Name) arguments;                                                                           \
    EndOperation(ticket);                                                                                              \
    return result;                                                                                                     \
  }
#include "probe/pmpi/elsewhere.def"
