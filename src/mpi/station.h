// Station: the program of a worker of an MPI job. It waits on its host for the calls of mpirun's remote start, and runs
// what they ask for.
//
// Each call has a process of its own, which is the parent of the daemon. Whoever calls and goes away, because mpirun
// was killed, takes the daemon along. Calls have nothing to do with each other, so a loop over all of them would only
// have made one's trouble that of the others.
//
//   shim ──▶ station ──▶ call ──▶ orted ──▶ parent of a rank (shim) ──▶ rank
#pragma once

#include <cstdint>
#include <string>

namespace aimaster::mpi {

struct StationOptions {
  std::string address;  // of this host; empty: nobody will call, since mpirun runs here itself
  uint16_t port = 0;
  std::string token_file;
};

StationOptions FindStation();  // out of our environment, where the agent has put it

// Returns only with an exit code that says why it can't go on: 1, or, where a daemon was killed, 128 + n for signal n.
int RunStation(const StationOptions& options);

}  // namespace aimaster::mpi
