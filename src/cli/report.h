// How a command ends: what it prints for a person or a script, and its exit code.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "core/error.h"

namespace aimaster::cli {

inline constexpr int kExitSuccess = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

// One line on standard error: "aimaster: …". Returns the exit code that goes with the kind of error.
int Complain(const Error& error);

// To standard output, whole, also into a pipe that is read slowly; kExitFailure when it can't be written.
int Print(std::string_view text);
int PrintJson(const nlohmann::json& value);

}  // namespace aimaster::cli
