// One parameter's value, between its text and its type.
#pragma once

#include <string>
#include <string_view>

#include "core/error.h"
#include "core/parameter_table.h"

namespace aimaster {

// What a person may write: "True, False", "a whole number from 0 to 4294967295".
std::string AllowedText(const Parameter& parameter);

// The value, or one sentence that names `written_name` (as the person wrote it, without dashes), the text and what is
// allowed. Blanks around the text don't count; case doesn't in booleans and choices.
Result<ParameterValue> ParseValue(const Parameter& parameter, std::string_view written_name, std::string_view text);

// The sentence for a parameter without a value; also where the empty text would be one.
std::string MissingValueText(const Parameter& parameter, std::string_view written_name);

// The value as people write it: "True", "Sync", "3", "0.25". ParseValue gives it back unchanged.
std::string ValueText(const Parameter& parameter, const ParameterValue& value);

inline std::string DefaultText(const Parameter& parameter) { return ValueText(parameter, DefaultValue(parameter)); }

}  // namespace aimaster
