// RemoteStart: the call that mpirun makes in place of ssh, once for each host: it has a daemon of MPI started there, is
// its voice here while it lives, and ends as it does.
//
// What is to run on mpirun's own host runs as this very process. For all other hosts there is a worker of the job with
// a station (station.h); it runs under that worker's shim, so that a stop finds it, whatever becomes of mpirun.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace aimaster::mpi {

struct Hosts {
  std::string own;                    // the address of the machine that mpirun runs on
  std::vector<std::string> stations;  // those of the other hosts
  uint16_t port = 0;                  // on which these are reached
  std::string token_file;
};

// Out of our environment, where the agent has put it.
Hosts FindHosts();

// Whether mpirun's word for a host means this machine.
bool IsThisMachine(const std::string& host, const Hosts& hosts);

// The exit code for mpirun: the daemon's, 128 + n for signal n, 255 as ssh's where the host can't be reached.
int StartRemotely(const std::string& host, const std::string& command, const Hosts& hosts);

}  // namespace aimaster::mpi
