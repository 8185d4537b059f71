// MpiLaunch: what an instance of an MPI job gets from its node beside what every instance gets: the files and variables
// by which an unchanged mpirun finds the job's hosts and starts what it starts there under shims, and the folder in
// which the parents of MPI's ranks write down how these ended (shim/mpi_rank.h).
//
// The agent makes them, and not the master: they are full of paths of the node. See docs/decisions/mpi.md.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "agent/attempt_files.h"
#include "agent/launch_file.h"
#include "agent/rank_report.h"
#include "aimaster/v1/agent.pb.h"

namespace aimaster::agent {

struct MpiSurroundings {
  std::string programs;    // the folder with the shim and its neighbours
  std::string token_file;  // the job's secret, by which the hosts of a launcher know each other
};

// Changes what is to be launched; returns the files that it needs, by their names within the attempt's directory.
std::map<std::string, std::string> AddMpi(const v1::MpiPart& part, const AttemptDirectory& directory,
                                          const MpiSurroundings& surroundings, Launch& launch);

// The end of the rank of MPI that failed first by itself under this attempt, at most kMpiExitMax before `now`, as that
// of `rank`, the instance's own; nothing when none did, or this is no MPI job.
std::optional<RankEnd> FindMpiRankEnd(const AttemptDirectory& directory, ClaimedRank rank, Monotonic now);

// An instance's own process has ended with an exit. Where it is mpirun, and a rank of MPI under it had failed before,
// it has only passed that on: the end becomes that rank's. So it does where a rank left without MPI_Finalize: MPICH
// then kills the others, and ends with what these died of or with 0, as it happens.
void BlameMpiRank(const AttemptDirectory& directory, RankEnd& end);

// Whether ranks of MPI under this attempt have parents of ours, so that what mpirun says of them is worth nothing.
bool HasWatchedMpiRanks(const AttemptDirectory& directory);

// Whether the attempt waits for what mpirun wants started on its host.
bool IsMpiStation(const AttemptDirectory& directory);

}  // namespace aimaster::agent
