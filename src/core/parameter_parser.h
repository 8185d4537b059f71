// The parameter parser: given names and values become the parameters of a job, or one error. All or nothing: nothing is
// started with half of what a person asked for, and what is only odd (no effect, an older name) is a note, not an
// error.
//
//   Result<std::vector<GivenParameter>> given = SplitParameterString(error_monitoring_args);
//   given->push_back({"max-num-of-job-restart", "3"});      // a flag of the command line
//   Result<ParsedParameters> parsed = ParseParameters(*given);
//
// Sources are joined before they are parsed, so that a contradiction between two of them is found like one within.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/fault_tolerance_parameters.h"
#include "core/job_spec.h"
#include "core/parameter_words.h"

namespace aimaster {

// A parameter that somebody set, for "where does this value come from".
struct ParameterOrigin {
  std::string name;          // of the table
  std::string written_name;  // perhaps an older one
  std::string value;         // as people write it, "True"
  bool operator==(const ParameterOrigin&) const = default;
};

struct ParsedParameters {
  FaultToleranceParameters fault_tolerance;
  std::vector<std::string> notes;      // sentences for people, in the order of the table
  std::vector<ParameterOrigin> given;  // in the order of writing, each name of the table once
};

// The fault-tolerance parameters alone. What is not given keeps its value of `base`.
Result<ParsedParameters> ParseParameters(std::span<const GivenParameter> given,
                                         const FaultToleranceParameters& base = {});
// SplitParameterString and ParseParameters.
Result<ParsedParameters> ParseParameterString(std::string_view text);

// The fault-tolerance parameters and the options of `aimaster run`, into a job. Adds to `spec.notes`. The spec stays as
// it was on an error.
Result<std::vector<ParameterOrigin>> ApplyParameters(std::span<const GivenParameter> given, JobSpec& spec);

// The parameters as one string that ParseParameterString gives back: what differs from the defaults, in the order of
// the table; empty when nothing does.
std::string FormatParameters(const FaultToleranceParameters& parameters);

}  // namespace aimaster
