// The known name that somebody probably meant: "did you mean …?".
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace aimaster {

// How many letters have to be put in, taken out, changed, or swapped with their neighbour.
size_t EditDistance(std::string_view a, std::string_view b);

// The nearest name, the first one of equals; none when even that one is too far away to be what was meant.
std::optional<std::string_view> NearestName(std::string_view written, std::span<const std::string_view> names);

// ", did you mean --x?", or "".
std::string DidYouMean(std::string_view written, std::span<const std::string_view> names);

}  // namespace aimaster
