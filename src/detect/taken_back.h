// TakenBack: the words of a fault in a line that itself says there is none. A health check counts to zero, a program
// shows what it would restart on, a shell traces the grep that looks for the words.
//
// Think of hearing "fire" in the next room: one listens to the rest of the sentence before one runs. A pattern for each
// such sentence was rejected: there are as many as programs, they all take words back in the same few ways, and a line
// that matched is the only one that has to be asked.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "detect/pattern_matcher.h"

namespace aimaster {

// Whether `line` says that what its bytes [begin, end) name is not so: a count of 0, a "no" or "none", a list of what a
// program looks for, a command, a supposition, something that was ignored.
bool IsTakenBack(std::string_view line, size_t begin, size_t end);

// The rule that a clean line stands for, given what the matcher found in it: the strongest one whose words the line
// does not take back. What speaks of the program's own mistakes always stands.
std::optional<RuleIndex> StandingRule(PatternMatcher& matcher, std::string_view line,
                                      const PatternMatcher::Found& found);

}  // namespace aimaster
