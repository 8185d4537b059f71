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

// Prepared once and started again and again, since MPI 4.
#if MPI_VERSION >= 4
#undef COLLECTIVE
#define COLLECTIVE(Name, lower, NAME, Iname, iname, INAME, does, amount, root, arguments, ...)    \
  EXPORT int MPI_##Name##_init(__VA_ARGS__, MPI_Info info, MPI_Request* request) {                \
    const int result = REAL(Name##_init)(UNWRAP arguments, info, request);                        \
    if (PassesThrough() || result != MPI_SUCCESS) return result;                                  \
    const struct Amount how_much = amount;                                                        \
    const int peer = root;                                                                        \
    const struct RecorderOperation operation = {.communicator = PlaceOf(KEY(comm)),               \
                                                .peer = peer < 0 ? RECORD_NONE : (uint32_t)peer,  \
                                                .bytes = how_much.bytes,                          \
                                                .flags = how_much.varies ? kRecordSizeVaries : 0, \
                                                .name = kName##Name##_init,                       \
                                                .function = does,                                 \
                                                .type = how_much.type};                           \
    PrepareRequest(KEY(*request), &operation);                                                    \
    return result;                                                                                \
  }
#include "probe/pmpi/collectives.def"
#endif
