// A number for each function, in the order of the tables; the record says which name it stands for.
#ifndef AIMASTER_PROBE_PMPI_NAMES_H_
#define AIMASTER_PROBE_PMPI_NAMES_H_

#define COLLECTIVE(Name, name, NAME, Iname, iname, INAME, ...) FUNCTION(Name) FUNCTION(Iname) FUNCTION(Name##_init)
#define MESSAGE_SEND(Name, name, NAME, Iname, iname, INAME, Prepared, prepared, PREPARED) \
  FUNCTION(Name) FUNCTION(Iname) FUNCTION(Prepared)
#define MESSAGE_RECEIVE MESSAGE_SEND
#define CREATION(Name, ...) FUNCTION(Name)
#define ELSEWHERE(Name, ...) FUNCTION(Name)
#define OTHER(Name) FUNCTION(Name)

enum FunctionName {
#define FUNCTION(Name) kName##Name,
#include "probe/pmpi/collectives.def"
#include "probe/pmpi/creations.def"
#include "probe/pmpi/elsewhere.def"
#include "probe/pmpi/messages.def"
#include "probe/pmpi/others.def"
#undef FUNCTION
  kFunctionNames,
};

static const char* const kFunctionTexts[] = {
#define FUNCTION(Name) "MPI_" #Name,
#include "probe/pmpi/collectives.def"
#include "probe/pmpi/creations.def"
#include "probe/pmpi/elsewhere.def"
#include "probe/pmpi/messages.def"
#include "probe/pmpi/others.def"
#undef FUNCTION
};

#undef COLLECTIVE
#undef MESSAGE_SEND
#undef MESSAGE_RECEIVE
#undef CREATION
#undef ELSEWHERE
#undef OTHER

#endif  // AIMASTER_PROBE_PMPI_NAMES_H_
