// aimaster-mpi: what the mpirun of an MPI job calls in place of ssh, and what answers it on the other hosts.
//
//   mpirun ──▶ aimaster-mpi HOST COMMAND…  ──────▶ aimaster-mpi --station
#include <cstdio>
#include <string>
#include <vector>

#include "mpi/daemon.h"
#include "mpi/remote_start.h"
#include "mpi/station.h"

namespace aimaster::mpi {
namespace {

constexpr int kExitUsage = 2;

int Run(const std::vector<std::string>& words) {
  if (words.size() == 1 && words[0] == "--station") return RunStation(FindStation());
  if (words.size() < 2 || words[0].starts_with('-')) {
    std::fprintf(stderr, "usage: aimaster-mpi HOST COMMAND… | aimaster-mpi --station\n");
    return kExitUsage;
  }
  std::string command;  // joined as a remote shell's client does, for the shell to take apart
  for (size_t i = 1; i < words.size(); ++i) command += (i == 1 ? "" : " ") + words[i];
  const Hosts hosts = FindHosts();
  return IsThisMachine(words[0], hosts) ? BecomeDaemon(command) : StartRemotely(words[0], command, hosts);
}

}  // namespace
}  // namespace aimaster::mpi

int main(int argc, char** argv) { return aimaster::mpi::Run({argv + 1, argv + argc}); }
