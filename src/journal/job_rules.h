// JobRules: the rules by which a job's failures are judged, as its directory has them. They were fixed when it was
// submitted; the file that they came from may have changed since.
#pragma once

#include "core/error.h"
#include "detect/rules_in_force.h"
#include "journal/job_directory.h"

namespace aimaster {

// The built-in ones where the job brought none of its own.
Result<RulesInForce> ReadRulesOf(const JobDirectory& job);

}  // namespace aimaster
