// A user's own rules: how they join those that are built in, travel as bytes, and find lines.
#include "detect/rules_in_force.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "detect/line_scanner.h"
#include "detect/pattern_compiler.h"
#include "detect/root_cause.h"
#include "detect/rule_merge.h"
#include "detect/rules_yaml.h"

namespace aimaster {
namespace {

constexpr const char* kOwnRule = R"(
rules:
- code: TokenServiceDown
  category: network
  role: root
  retryable: yes
  severity: 2
  message: The token service is down.
  match: {patterns: ['\bTokenService\b.{0,40}\bdown\b'], exit_codes: [77]}
)";

Result<CompiledRules> Compile(const std::string& text) {
  const RuleSet& built_in = RuleTable::BuiltIn().set();
  Result<RuleSet> own = ParseRulesYaml(text, {.base = &built_in, .check_pattern = CheckPattern});
  if (!own) return std::unexpected(own.error());
  Result<CompiledPatterns> patterns = CompilePatterns(NewPatterns(built_in, *own));
  if (!patterns) return std::unexpected(patterns.error());
  return CompiledRules{
      .build = ThisBuild(), .source = text, .rules = std::move(*own), .patterns = std::move(*patterns)};
}

RulesInForce InForce(const std::string& text) {
  Result<CompiledRules> own = Compile(text);
  EXPECT_TRUE(own.has_value()) << own.error().message;
  Result<RulesInForce> rules = RulesInForce::With(std::move(*own));
  EXPECT_TRUE(rules.has_value()) << rules.error().message;
  return std::move(*rules);
}

std::string RuleOf(const RulesInForce& rules, const std::string& line) {
  PatternMatcher matcher(rules);
  EXPECT_EQ(matcher.error(), "");
  const auto matches = ScanText(matcher, "step 1\n" + line + "\nstep 2\n", "rank0.err");
  return matches.empty() ? "" : matches.front().rule;
}

TEST(RulesInForceTest, ANewRuleFindsItsLinesBesideTheBuiltInOnes) {
  const RulesInForce rules = InForce(kOwnRule);
  EXPECT_EQ(RuleOf(rules, "TokenService at 10.0.0.1 is down"), "TokenServiceDown");
  EXPECT_EQ(RuleOf(rules, "RuntimeError: CUDA out of memory"), "CudaOutOfMemory");
  EXPECT_EQ(rules.table().rule(0).code, "TokenServiceDown") << "what a user adds is the strongest";
  const auto ending = rules.table().ForEnding({.exit = RankExit{.code = 77}});
  EXPECT_EQ(rules.table().rule(ending).code, "TokenServiceDown");
}

TEST(RulesInForceTest, AKnownCodeNeedSayOnlyWhatIsDifferent) {
  const RulesInForce rules = InForce("rules:\n- {code: CudaOutOfMemory, retryable: yes}\n");
  const RuleTable& table = rules.table();
  const Rule& changed = table.rule(*table.Find("CudaOutOfMemory"));
  const Rule& before = RuleTable::BuiltIn().rule(*RuleTable::BuiltIn().Find("CudaOutOfMemory"));
  EXPECT_EQ(changed.retryable, Retryable::kYes);
  EXPECT_EQ(changed.patterns, before.patterns);
  EXPECT_EQ(changed.message, before.message);
  EXPECT_EQ(table.Find("CudaOutOfMemory"), RuleTable::BuiltIn().Find("CudaOutOfMemory")) << "in the same place";
  EXPECT_EQ(rules.parts().size(), 1u) << "there is nothing new to look for";
  EXPECT_EQ(RuleOf(rules, "RuntimeError: CUDA out of memory"), "CudaOutOfMemory");
}

TEST(RulesInForceTest, PatternsThatAreReplacedAreNotFoundAnyMore) {
  const RulesInForce rules =
      InForce("rules:\n- {code: StorageError, match: {patterns: ['\\bEIO\\b', 'shelf \\d+ fell']}}\n");
  EXPECT_EQ(RuleOf(rules, "Input/output error"), "");
  EXPECT_EQ(RuleOf(rules, "read: EIO"), "StorageError");
  EXPECT_EQ(RuleOf(rules, "shelf 7 fell"), "StorageError");
}

TEST(RulesInForceTest, NeverRootHidesWhatABuiltInRuleKnows) {
  const RulesInForce rules = InForce("never_root: ['(?i)benchmark of error handling']\n");
  EXPECT_EQ(RuleOf(rules, "benchmark of error handling: CUDA out of memory"), "");
}

TEST(RulesInForceTest, AnExitCodeGoesToWhoClaimsIt) {
  const RulesInForce rules = InForce(
      "rules:\n- {code: Preempted9, category: preemption, role: root, retryable: yes, severity: 2, message: Gone., "
      "match: {exit_codes: [2], signals: [9]}}\n");
  const auto code = [&](RankFailure failure) { return rules.table().rule(rules.table().ForEnding(failure)).code; };
  EXPECT_EQ(code({.exit = RankExit{.code = 2}}), "Preempted9");
  EXPECT_EQ(code({.exit = RankExit{.signal = 9}}), "Preempted9");
  EXPECT_EQ(code({.exit = RankExit{.code = 137}}), "Sigkill") << "that one it has not claimed";
}

TEST(RulesInForceTest, APatternWithoutPlainTextIsFoundAllTheSame) {
  const RulesInForce rules = InForce(
      "rules:\n- {code: Odd, category: user, role: root, retryable: no, severity: 2, message: Odd., "
      "match: {patterns: ['^\\d+-\\d+-\\d+$']}}\n");
  EXPECT_TRUE(rules.parts()[1].every_line);
  EXPECT_EQ(RuleOf(rules, "12-34-56"), "Odd");
}

TEST(RulesInForceTest, WhatAnotherVersionCompiledStillJudges) {
  Result<CompiledRules> own = Compile(kOwnRule);
  ASSERT_TRUE(own.has_value());
  own->build = "0.0.1 of another day";
  const Result<RulesInForce> rules = RulesInForce::With(std::move(*own));
  ASSERT_TRUE(rules.has_value());
  EXPECT_NE(rules->error().find("0.0.1 of another day"), std::string::npos);
  EXPECT_EQ(PatternMatcher(*rules).error(), rules->error());
  const RankFailure failure{.exit = RankExit{.code = 77}};
  EXPECT_EQ(Judge({&failure, 1}, 1, rules->table()).fault, "TokenServiceDown");
}

TEST(RulesInForceTest, RefusesRulesThatAreAmbiguousTogether) {
  CompiledRules own{.build = ThisBuild()};
  own.rules.rules = {Rule{.code = "One", .message = "One.", .exit_codes = {5}},
                     Rule{.code = "Two", .message = "Two.", .exit_codes = {5}}};
  const Result<RulesInForce> rules = RulesInForce::With(own);
  ASSERT_FALSE(rules.has_value());
  EXPECT_NE(rules.error().message.find("exit code 5"), std::string::npos) << rules.error().message;
}

TEST(CompiledRulesTest, AreTheSameAfterAJourney) {
  const Result<CompiledRules> rules = Compile(kOwnRule);
  ASSERT_TRUE(rules.has_value());
  const Result<CompiledRules> read = DecodeCompiledRules(Encode(*rules));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(*read, *rules);
  CompiledRules all{.build = ThisBuild(), .rules = RuleTable::BuiltIn().set()};
  EXPECT_EQ(DecodeCompiledRules(Encode(all)).value(), all);
}

TEST(CompiledRulesTest, DamageIsNoticed) {
  const std::string bytes = Encode(*Compile(kOwnRule));
  for (size_t at = 0; at < bytes.size(); at += 7) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_FALSE(DecodeCompiledRules(damaged).has_value()) << at;
    EXPECT_FALSE(DecodeCompiledRules(bytes.substr(0, at)).has_value()) << at;
  }
}

TEST(RuleMergeTest, TheHashTellsAnyChange) {
  const RuleSet& built_in = RuleTable::BuiltIn().set();
  EXPECT_EQ(HashOf(built_in), HashOf(MergeRules(built_in, {})));
  for (auto change : {+[](RuleSet& set) { set.rules[0].retryable = Retryable::kOncePerPlace; },
                      +[](RuleSet& set) { set.rules[0].message += "!"; },
                      +[](RuleSet& set) { set.rules[0].exit_codes.push_back(200); },
                      +[](RuleSet& set) { std::swap(set.rules[0], set.rules[1]); },
                      +[](RuleSet& set) { set.never_root.pop_back(); }}) {
    RuleSet changed = built_in;
    change(changed);
    EXPECT_NE(HashOf(changed), HashOf(built_in));
  }
}

}  // namespace
}  // namespace aimaster
