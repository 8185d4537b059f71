// What C4D has found in a job, out of its journal, in words and as JSON: what holds now comes first, then what was said
// before, as it was said.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "core/job_spec.h"
#include "journal/job_reader.h"

namespace aimaster::cli {

// Of one input of the kind CommunicationJudged: a line for each verdict that holds from then on, or one that says that
// none does.
std::string C4dLines(const Input& finding, const Terminal& terminal);
nlohmann::json C4dFindingJson(const JobSnapshot& job, const Input& finding);

// `findings` are inputs of the kind CommunicationJudged, in order.
std::string C4dFindings(const JobSpec& spec, const JobSnapshot& job, const std::vector<Input>& findings,
                        const Terminal& terminal);
nlohmann::json C4dFindingsJson(const JobSpec& spec, const JobSnapshot& job, const std::vector<Input>& findings);

}  // namespace aimaster::cli
