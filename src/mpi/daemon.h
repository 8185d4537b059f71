// Daemon: what mpirun wants to have started on a host, orted or hydra_pmi_proxy, as a child of ours.
//
// Its command is written for a remote shell: it holds quotes, and OpenMPI's also variables to set. It is given to
// /bin/sh, the one shell that every machine has, and not to the user's own, whose start files print things and change
// PATH.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace aimaster::mpi {

// Our environment as the daemon has to find it, "NAME=VALUE": MPICH's proxy gets our hook (shim/hydra_ranks.c).
std::vector<std::string> EnvironmentOf(std::string_view command);

// Becomes the command; an exit code when that fails.
int BecomeDaemon(const std::string& command);

// A child in a group of its own, with nothing to read; what it prints can be read from the other two. It does not
// outlive us.
struct Daemon {
  pid_t pid = 0;
  int output = -1;
  int errors = -1;
};
Result<Daemon> StartDaemon(const std::string& command);

}  // namespace aimaster::mpi
