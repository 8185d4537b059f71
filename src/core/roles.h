// Roles: what an instance's role means for the life of its job, and what the job's framework changes about that. All
// that the frameworks differ in, as far as decisions go, is here; what they find in their environment is the master's.
//
// The alternative was a class per framework. There are four questions and four frameworks, and most answers are the
// same: a table of functions that each fit on a line is easier to read than four classes that mostly inherit.
#pragma once

#include <cstdint>
#include <string>

#include "core/error.h"
#include "core/job_spec.h"

namespace aimaster {

// Whether the job's command is an mpirun that a launcher runs. One without a launcher, from a version that only noted
// the framework, is as any other job.
bool IsMpi(const JobSpec& spec);

// Whether, in an Async job, a failed instance of the role is restarted alone. The others hold what the job runs on: its
// parameters (ps), its rendezvous (master), its session and checkpoints (chief), or all of it (launcher). Instances of
// an ElasticBatch job hold nothing for each other; of an MPI job no part can come back alone.
bool RestartsAlone(const JobSpec& spec, Role role);

// Whether the instance holds ranks for the launcher of an MPI job: a worker, which starts what mpirun wants on its host
// until it is stopped.
bool IsMpiHost(const JobSpec& spec, Role role);

// Whether the job has succeeded only when this instance has. Who does not count is stopped when all others have
// succeeded: a ps serves and an evaluator looks on, neither has an end of its own, nor has a worker of an MPI job;
// under SuccessPolicy::kChiefWorker the chief alone counts (a master where there is no chief, the first worker where
// there is neither, of an MPI job the launcher).
bool CountsForSuccess(const JobSpec& spec, Role role, uint32_t index_in_role);

// How many instances that are, one at least, and what is said when all of them have succeeded.
uint32_t CountingInstances(const JobSpec& spec);
std::string SuccessText(const JobSpec& spec);

// Whether each instance of the role has an address of its own, which all others know: TF_CONFIG lists them.
bool HasAddress(const JobSpec& spec, Role role);

// Whether the ranks meet at MASTER_ADDR and MASTER_PORT.
bool MeetAtMaster(const JobSpec& spec);

// Whether an instance that has succeeded is done for good: a restart of the job leaves it out.
bool KeepsResults(const JobSpec& spec);

// What a framework can't be started with. Called once, with complete roles; the error is of kind kUsage.
Status CheckRoles(const JobSpec& spec);

}  // namespace aimaster
