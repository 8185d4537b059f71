// ReportEvent: what an agent's report means to the engine. The border where bytes from outside become facts: ids are
// checked against the job, texts are bounded and made valid, times are corrected to the master's clock.
#pragma once

#include <optional>

#include "aimaster/v1/agent.pb.h"
#include "engine/input.h"
#include "engine/job_state.h"

namespace aimaster {

// None when the report names an instance, rank or node that the job doesn't have, or says nothing.
std::optional<Event> ReportEvent(const v1::Report& report, NodeIndex from, const JobState& job);

}  // namespace aimaster
