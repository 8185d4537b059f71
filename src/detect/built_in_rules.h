// What rules_compiler makes out of rules/errors.yaml while building, so that a program starts without reading or
// compiling anything.
#pragma once

#include <span>

#include "detect/rule.h"

namespace aimaster {

RuleSet BuiltInRuleSet();

// All patterns of BuiltInRuleSet() in the order of ListPatterns, see CompiledPatterns. No line has to be tried of which
// the words say nothing: rules_compiler insists on it.
struct BuiltInDatabases {
  std::span<const char> lines, words, short_words;
};
BuiltInDatabases BuiltInPatterns();

}  // namespace aimaster
