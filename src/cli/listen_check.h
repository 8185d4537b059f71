// What would keep a job's master from listening, found before there is a job: an address that is not this machine's, a
// certificate that can't be used, too few descriptors for its connections.
#pragma once

#include "core/error.h"
#include "core/job_spec.h"

namespace aimaster::cli {

// Every error is of kind kUsage and names the option, or the limit.
Status CheckListening(const JobSpec& spec);

}  // namespace aimaster::cli
