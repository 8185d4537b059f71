// Orders: the actions that follow from the state alone. A transition gives them when it gets there, and a master that
// took over gives them again (Engine::Outstanding); both are made here, so the two can't differ.
#pragma once

#include <vector>

#include "engine/action.h"
#include "engine/job_state.h"

namespace aimaster {

// The nodes that are wanted and not there, with those to avoid.
AcquireNodes AcquireOrder(const JobState& job);
// After a first "address already in use" ports are not held any more: a program that binds without SO_REUSEADDR can't
// bind what we hold. Nor after a refusal.
bool HoldsPorts(const JobState& job);
// The port of the round, on rank 0's node; or, where instances have addresses of their own, as many on each node as are
// still wanted there.
std::vector<ReservePort> ReserveOrders(const JobState& job);
StartInstance StartOrder(const JobState& job, InstanceIndex instance);
StopInstance StopOrder(const JobState& job, InstanceIndex instance);
CollectEvidence CollectOrder(const JobState& job);
CaptureStacks CaptureOrder(const JobState& job);
// In an Async job each failed instance is judged by itself, unless one of them can't be restarted alone: then all are
// one failure of the job.
JudgeFailure JudgeOrder(const JobState& job);

}  // namespace aimaster
