// Help texts out of the commands' descriptions: for a terminal, and as the page docs/cli.md.
#pragma once

#include <string>

#include "cli/command.h"
#include "cli/terminal.h"

namespace aimaster::cli {

inline constexpr std::string_view kVersion = AIMASTER_VERSION;

std::string OverviewHelp(const Terminal& terminal);
std::string CommandHelp(const Command& command, const Terminal& terminal);
// The whole of docs/cli.md.
std::string CommandLinePage();

// `aimaster <command> <operands>` with what else it takes.
std::string Synopsis(const Command& command);

}  // namespace aimaster::cli
