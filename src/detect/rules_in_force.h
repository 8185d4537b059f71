// RulesInForce: the rules by which a job is judged, and what recognises them in text: those that are built in, and a
// user's own where there are some.
//
// Each part brings the database that it was compiled into. To compile all of them together once more was rejected:
// where the user adds three rules, some seven hundred patterns would be compiled with them, which takes seconds.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "detect/compiled_rules.h"
#include "detect/rule_table.h"

namespace aimaster {

// What a pattern of a database stands for.
struct PatternMeaning {
  PatternKind kind = PatternKind::kLine;
  std::optional<RuleIndex> rule;  // none: a rule that was overridden had it, or it is never_root
};

struct PatternPart {
  std::span<const char> lines, words, short_words;  // see CompiledPatterns
  bool every_line = false;
  std::vector<PatternMeaning> meanings;  // by the number of the pattern
};

// Immutable. It may be moved, and must outlive the matchers that use it.
class RulesInForce {
 public:
  static const RulesInForce& BuiltIn();
  // The built-in ones and the user's. Fails where together they leave an ending without a rule, or give one to two.
  // Rules that another build has compiled can judge, but not be looked for in text: error() says so.
  static Result<RulesInForce> With(CompiledRules own);

  const RuleTable& table() const { return *table_; }
  const std::vector<PatternPart>& parts() const { return parts_; }
  const std::string& error() const { return error_; }  // why some patterns are not looked for; empty: all are

 private:
  RulesInForce() = default;
  void AddBuiltIn();

  std::unique_ptr<const CompiledRules> own_;  // its bytes are pointed to
  std::unique_ptr<const RuleTable> table_;
  std::vector<PatternPart> parts_;
  std::string error_;
};

}  // namespace aimaster
