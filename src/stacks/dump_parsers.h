// What tools print about the stacks of processes, as values. One parser for each tool's words; ParseDump finds out
// whose they are, so that a person can merge whatever there is.
//
// The words of a tool are no interface, and change. So a parser takes what it knows and passes over the rest: a dump of
// which one line is strange is still worth reading at three in the morning. Only a text in which nothing is known is
// an error.
#pragma once

#include <string_view>
#include <vector>

#include "core/error.h"
#include "stacks/frame.h"

namespace aimaster::stacks {

// Each gives no process where the text is not of its kind.
std::vector<ProcessDump> ParsePySpyJson(std::string_view text);     // py-spy dump --json
std::vector<ProcessDump> ParsePySpyText(std::string_view text);     // py-spy dump
std::vector<ProcessDump> ParsePystack(std::string_view text);       // pystack remote, pystack core
std::vector<ProcessDump> ParseFaulthandler(std::string_view text);  // Python's own; also within other output
std::vector<ProcessDump> ParseEuStack(std::string_view text);       // eu-stack, with or without -m -s -i
std::vector<ProcessDump> ParseGdb(std::string_view text);           // thread apply all backtrace

// Of any of them, or kUsage: what is known, and what was found in place of it.
Result<std::vector<ProcessDump>> ParseDump(std::string_view text);

}  // namespace aimaster::stacks
