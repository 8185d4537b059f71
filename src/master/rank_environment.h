// RankEnvironment: the variables that AIMaster itself sets for a rank (docs/environment.md lists them).
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "engine/action.h"
#include "engine/job_state.h"
#include "engine/layout.h"

namespace aimaster {

using Environment = std::map<std::string, std::string>;

// The variables that are the same for every rank and not the rank's own: the submitted environment with the defaults
// that make a training observable (unbuffered output, a fault handler, one OpenMP thread when ranks share a node).
Environment BaseEnvironment(const JobSpec& spec);

// The variables of one rank: the `local`-th of the instance, which has this place on its node. `attempt_directory` is
// where its files go.
Environment RankEnvironment(const JobState& job, const NodePlace& place, const StartInstance& start, uint32_t local,
                            const std::filesystem::path& attempt_directory);

}  // namespace aimaster
