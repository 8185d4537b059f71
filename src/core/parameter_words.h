// From a line of flags to pairs of a name and a value: how people really write --error-monitoring-args.
//
// Quotes are as in a shell: '…' is literal, in "…" a backslash protects " and \. Blanks of any kind and number
// separate. A backslash before a blank or a line break is a blank too, where a shell would escape it: lines that were
// continued with a backslash arrive here folded by YAML, with blanks behind the backslash, or with Windows line ends,
// and no value ever needs an escaped blank. A full shell grammar was rejected: $, * and # in a value mean themselves.
//
// --name=value and --name value are the same; a value may start with a single dash (-1). Every known parameter needs a
// value. A boolean flag alone is not taken as True, although that would be unambiguous: strings of the service always
// give the value, and a string that works here should work there.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace aimaster {

inline constexpr size_t kParameterStringMaxBytes = 64 * 1024;

// A parameter as it was written, before anybody looked at what it means.
struct GivenParameter {
  std::string name;  // without dashes, perhaps an older one, perhaps unknown
  std::string value;
  bool fault_tolerance_only = false;  // came from a string that can't hold options of `aimaster run`
  bool operator==(const GivenParameter&) const = default;
};

// The whole string of the service's setting ErrorMonitoringArgs. Errors are of kind kUsage.
Result<std::vector<GivenParameter>> SplitParameterString(std::string_view text);
// Words that a shell has split already.
Result<std::vector<GivenParameter>> SplitParameterArguments(std::span<const std::string> arguments);

// `word` in such quotes that SplitParameterString gives it back; unchanged when it needs none.
std::string QuoteParameterWord(std::string_view word);

}  // namespace aimaster
