// FrameworkEnvironment: what a framework's programs look for beside the variables of PyTorch's launcher: the cluster of
// a TensorFlow job, the share of an ElasticBatch instance (docs/environment.md).
#pragma once

#include <cstdint>

#include "engine/job_state.h"
#include "master/rank_environment.h"

namespace aimaster {

// The variables of a rank of this instance; none for the other frameworks.
Environment FrameworkEnvironment(const JobState& job, const InstanceState& instance, uint32_t rank);

}  // namespace aimaster
