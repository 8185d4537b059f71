// Looks at what a master sent before anything acts on it: sizes, names, numbers. Names become path components and
// strings become files of NUL-ended text, so what could break out of either stops here, in one place.
#pragma once

#include <string_view>

#include "aimaster/v1/agent.pb.h"
#include "core/error.h"

namespace aimaster::agent {

// The message, or what is wrong with it.
Result<v1::ToAgent> ParseFrame(std::string_view bytes);

bool IsSafeName(std::string_view name);  // [A-Za-z0-9._-]+, not all dots

}  // namespace aimaster::agent
