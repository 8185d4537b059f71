// For tests: texts that a regular expression matches, made up from its own words. Knows the syntax that the rules use,
// and makes nonsense of the rest: whoever asks tries first whether the text really matches.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace aimaster {

using RandomNumber = std::function<uint32_t()>;

std::string TextFor(std::string_view expression, const RandomNumber& random);

}  // namespace aimaster
