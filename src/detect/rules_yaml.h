// The text of a rules file (docs/rules.md) as rules. Regular expressions are only bounded here; whether they compile is
// found out by who compiles them.
#pragma once

#include <functional>
#include <string_view>

#include "core/error.h"
#include "detect/rule.h"

namespace aimaster {

inline constexpr size_t kRulesTextMaxBytes = 1 << 20;
inline constexpr size_t kRulesMax = 2000;
inline constexpr size_t kPatternsPerRuleMax = 64;
inline constexpr size_t kPatternMaxBytes = 1024;
inline constexpr size_t kRuleTextMaxBytes = 1024;  // code, message and advice

struct RulesReading {
  // Rules that exist already. A rule of the same code need only say what is different; and a file may hold never_root
  // alone. None: the file is all there is.
  const RuleSet* base = nullptr;
  // Says what is wrong with a regular expression, so that the error can name its line.
  std::function<Status(std::string_view pattern)> check_pattern;
};

// The error names the rule, the field, its line, and what is allowed.
Result<RuleSet> ParseRulesYaml(std::string_view text, const RulesReading& reading = {});

}  // namespace aimaster
