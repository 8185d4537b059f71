// From the words behind a command's name to Arguments.
//
//   --name=value  --name value    the same; a value that starts with two dashes needs the first form,
//                                 except where flags are what the option takes
//   -n value      -nvalue         the same
//   --                            everything behind it is an operand
#pragma once

#include <span>
#include <string>

#include "cli/command.h"

namespace aimaster::cli {

inline constexpr std::string_view kHelpOption = "--help";

// The arguments, or one sentence of kind kUsage that names the word and what was probably meant. Where --help (or -h)
// is among them, nothing else is asked for.
Result<Arguments> ParseArguments(const Command& command, std::span<const std::string> words);

}  // namespace aimaster::cli
