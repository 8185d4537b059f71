// Notes: what a person should know about parameters that are valid and yet do nothing. Silence would let them wait for
// a restart that was never switched on.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/fault_tolerance_parameters.h"
#include "core/parameter_table.h"

namespace aimaster {

struct WrittenParameter {
  const Parameter* parameter = nullptr;
  std::string written_name;
};

// Notes about the given parameters and their result, each a sentence, in the order of the table.
std::vector<std::string> ParameterNotes(std::span<const WrittenParameter> given,
                                        const FaultToleranceParameters& result);

}  // namespace aimaster
