// What a rank finds in its environment so that it is recorded what it communicates (docs/c4d.md). The agent says it,
// and not the master: it is full of paths of the node.
//
// MPI's own ranks are not here: their parent chooses the library by the MPI that has started it (shim/mpi_rank.c).
#pragma once

#include <string>

#include "agent/attempt_files.h"
#include "agent/launch_file.h"

namespace aimaster::agent {

// `programs`: the folder of the shim and its neighbours. Where the folder for the records can't be made, nothing is
// changed, and a line of the log says why.
void AddProbes(const AttemptDirectory& attempt, const std::string& programs, Launch& launch);

}  // namespace aimaster::agent
