// MpiPart: what an instance is within an MPI job: the launcher, with the hosts where its mpirun may start ranks, or a
// station on one of them.
//
// Nodes with the same address are one host, however many this machine pretends to be: OpenMPI's shared memory does not
// bear two daemons on one machine that take each other for strangers. So pretended nodes add up to one host, and on it
// mpirun starts its ranks itself, under the launcher's shim.
#pragma once

#include "aimaster/v1/agent.pb.h"
#include "engine/action.h"
#include "engine/job_state.h"
#include "master/rank_environment.h"

namespace aimaster {

// Nothing is set in it where the job is none of MPI's.
v1::MpiPart MakeMpiPart(const JobState& job, const StartInstance& start);

// Changes the variables of an instance to those of an MPI job's: mpirun's ranks inherit what it has, so there is none
// that only one rank may have, and all devices are there for mpirun to share out.
void AdaptToMpi(const JobSpec& spec, Environment& environment);

}  // namespace aimaster
