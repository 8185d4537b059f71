// What rules_compiler makes out of rules/errors.yaml while building, so that a program starts without reading or
// compiling anything.
#pragma once

#include <span>

#include "detect/rule.h"

namespace aimaster {

RuleSet BuiltInRuleSet();

// All patterns of BuiltInRuleSet() in the order of ListPatterns, as a serialised Vectorscan database for any x86-64.
std::span<const char> BuiltInPatternDatabase();

}  // namespace aimaster
