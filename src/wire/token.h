// The job's secret as it crosses the wire: a bearer token in the Authorization header of every request.
#pragma once

#include <optional>
#include <string_view>

namespace aimaster {

// Can be sent as a bearer token: not empty, bounded, visible ASCII alone. An empty one would let everybody in.
bool IsToken(std::string_view text);

// The token of "Bearer <token>"; nothing when the header says anything else.
std::optional<std::string_view> BearerToken(std::string_view authorization);

// Takes as long for a wrong first character as for a wrong last one, so that nobody can guess one after the other.
bool SameToken(std::string_view given, std::string_view expected);

}  // namespace aimaster
