// Rules of a user beside those that are built in: what is said about a code that exists takes its place in the order,
// what is new comes first, since who writes it knows the job.
#pragma once

#include <string>
#include <vector>

#include "detect/rule.h"

namespace aimaster {

// Exit codes, signals and endings that a rule of `own` claims are taken from the rules of `base`; no two rules may have
// one, which RuleTable::Make sees to. Pure.
RuleSet MergeRules(const RuleSet& base, const RuleSet& own);

// The patterns of `own` that `base` does not have under the same code: what has to be compiled besides. Their `rule` is
// an index into own.rules; they point into `own`.
std::vector<Pattern> NewPatterns(const RuleSet& base, const RuleSet& own);

// A short name for all that the rules say: changes with any of it.
std::string HashOf(const RuleSet& set);

}  // namespace aimaster
