// Plausible: whether what was read could have been written by a master. A decoder answers for types; this is for sizes
// and times, so that a damaged file is an error, and neither an overflow nor an allocation of all memory.
#pragma once

#include "core/error.h"
#include "core/job_spec.h"
#include "engine/input.h"

namespace aimaster {

// What one master has to hold in memory whatever happens to it.
inline constexpr uint64_t kRanksOfJobMax = 16'000'000;
inline constexpr uint32_t kNodesOfJobMax = 1'000'000;

Status CheckPlausible(const JobSpec& spec);
Status CheckPlausible(const Input& input);

}  // namespace aimaster
