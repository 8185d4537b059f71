#include "detect/rules_in_force.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "detect/built_in_rules.h"
#include "detect/rule_merge.h"

namespace aimaster {
namespace {

// A pattern counts for the rule of the same code as long as that still has it.
std::vector<PatternMeaning> MeaningsOf(const std::vector<Pattern>& patterns, const RuleSet& set,
                                       const RuleTable& in_force) {
  std::vector<PatternMeaning> meanings;
  for (const Pattern& pattern : patterns) {
    PatternMeaning& meaning = meanings.emplace_back(pattern.kind, std::nullopt);
    if (pattern.kind == PatternKind::kNeverRoot) continue;
    const std::optional<RuleIndex> rule = in_force.Find(set.rules[pattern.rule].code);
    if (!rule) continue;
    const auto& texts =
        pattern.kind == PatternKind::kLine ? in_force.rule(*rule).patterns : in_force.rule(*rule).frames;
    if (std::ranges::find(texts, pattern.text) != texts.end()) meaning.rule = rule;
  }
  return meanings;
}

}  // namespace

void RulesInForce::AddBuiltIn() {
  const RuleSet& built_in = RuleTable::BuiltIn().set();
  const BuiltInDatabases databases = BuiltInPatterns();
  parts_.push_back({.lines = databases.lines,
                    .words = databases.words,
                    .short_words = databases.short_words,
                    .every_line = false,
                    .meanings = MeaningsOf(ListPatterns(built_in), built_in, *table_)});
}

const RulesInForce& RulesInForce::BuiltIn() {
  static const RulesInForce rules = [] {
    RulesInForce made;
    made.table_ = std::make_unique<RuleTable>(RuleTable::BuiltIn());
    made.AddBuiltIn();
    return made;
  }();
  return rules;
}

Result<RulesInForce> RulesInForce::With(CompiledRules own) {
  const RuleSet& built_in = RuleTable::BuiltIn().set();
  Result<RuleTable> table = RuleTable::Make(MergeRules(built_in, own.rules));
  if (!table) return std::unexpected(table.error());
  RulesInForce made;
  made.table_ = std::make_unique<RuleTable>(std::move(*table));
  made.own_ = std::make_unique<CompiledRules>(std::move(own));
  made.AddBuiltIn();
  const CompiledRules& kept = *made.own_;
  const std::vector<Pattern> added = NewPatterns(built_in, kept.rules);
  if (added.empty()) return made;
  if (kept.build != ThisBuild()) {
    made.error_ = "the patterns of the user's rules were compiled by another version (" + kept.build + ", this is " +
                  ThisBuild() + "), so they are not looked for; `aimaster resume` compiles them again";
    return made;
  }
  made.parts_.push_back({.lines = kept.patterns.lines,
                         .words = kept.patterns.words,
                         .short_words = kept.patterns.short_words,
                         .every_line = kept.patterns.every_line,
                         .meanings = MeaningsOf(added, kept.rules, made.table())});
  return made;
}

}  // namespace aimaster
