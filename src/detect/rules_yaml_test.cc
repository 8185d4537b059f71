#include "detect/rules_yaml.h"

#include <gtest/gtest.h>

#include <string>

namespace aimaster {
namespace {

std::string RuleText(const std::string& field = "", const std::string& value = "") {
  std::string text = "rules:\n";
  const std::pair<const char*, const char*> fields[] = {{"code", "DiskFull"},
                                                        {"category", "storage"},
                                                        {"role", "root"},
                                                        {"retryable", "no"},
                                                        {"severity", "2"},
                                                        {"message", "Full."},
                                                        {"match", "{patterns: ['No space']}"}};
  bool first = true, replaced = false;
  for (const auto& [name, normal] : fields) {
    const bool replace = name == field;
    replaced |= replace;
    if (replace && value.empty()) continue;
    text += (first ? "- " : "  ") + std::string(name) + ": " + (replace ? value : normal) + "\n";
    first = false;
  }
  if (!field.empty() && !replaced) text += "  " + field + ": " + value + "\n";
  return text;
}

std::string ErrorOf(const std::string& text) {
  const Result<RuleSet> rules = ParseRulesYaml(text);
  return rules ? "accepted" : rules.error().message;
}

TEST(RulesYamlTest, ReadsARule) {
  const Result<RuleSet> set = ParseRulesYaml(RuleText("advice", "Make room.") + "never_root: ['^bye$']\n");
  ASSERT_TRUE(set.has_value()) << set.error().message;
  ASSERT_EQ(set->rules.size(), 1u);
  const Rule expected{.code = "DiskFull",
                      .category = Category::kStorage,
                      .fault_class = FaultClass::kStorage,
                      .role = RuleRole::kRoot,
                      .retryable = Retryable::kNo,
                      .severity = Severity::kRestartProcesses,
                      .node_suspect = false,
                      .message = "Full.",
                      .advice = "Make room.",
                      .patterns = {"No space"}};
  EXPECT_EQ(set->rules[0], expected);
  EXPECT_EQ(set->never_root, std::vector<std::string>{"^bye$"});
}

TEST(RulesYamlTest, AClassIsWrittenWhereItIsNotTheUsualOneOfTheCategory) {
  const Result<RuleSet> set = ParseRulesYaml(RuleText("class", "user_resource"));
  ASSERT_TRUE(set.has_value()) << set.error().message;
  EXPECT_EQ(set->rules[0].fault_class, FaultClass::kUserResource);
  EXPECT_NE(ErrorOf(RuleText("class", "cosmic")).find("'cosmic' is not one of user_code, user_config"),
            std::string::npos);
}

TEST(RulesYamlTest, NamesTheRuleTheFieldAndWhatIsAllowed) {
  EXPECT_EQ(ErrorOf(RuleText("role", "rooot")),
            "rules: line 4: rule 'DiskFull': field 'role': 'rooot' is not one of root, cascade, either, confirmation");
  EXPECT_EQ(ErrorOf(RuleText("severity", "4")),
            "rules: line 6: rule 'DiskFull': field 'severity': '4' is no whole number 1 … 3");
  EXPECT_EQ(ErrorOf(RuleText("retriable", "yes")),
            "rules: line 9: rule 'DiskFull': unknown field 'retriable'; known are code, category, class, role, "
            "retryable, severity, node_suspect, message, advice, match");
  EXPECT_EQ(
      ErrorOf(RuleText("code", "disk full")),
      "rules: line 2: rule 'disk full': field 'code': must be letters and digits, the first a capital, at most 64");
  EXPECT_EQ(ErrorOf(RuleText("match", "{}")),
            "rules: line 8: rule 'DiskFull': field 'match': is empty: nothing would ever match");
  EXPECT_EQ(ErrorOf(RuleText("match", "{exit_codes: [256]}")),
            "rules: line 8: rule 'DiskFull': field 'match.exit_codes': '256' is no whole number 0 … 255");
  EXPECT_EQ(ErrorOf(RuleText("node_suspect", "maybe")),
            "rules: line 9: rule 'DiskFull': field 'node_suspect': must be true or false");
}

TEST(RulesYamlTest, MissesWhatIsMissing) {
  for (const char* field : {"category", "role", "retryable", "severity", "message", "match"}) {
    EXPECT_EQ(ErrorOf(RuleText(field)), "rules: rule 'DiskFull': field '" + std::string(field) + "': is missing");
  }
  EXPECT_EQ(ErrorOf(RuleText("code")), "rules: rule 1: field 'code': is missing");
}

TEST(RulesYamlTest, RefusesWhatIsNoRulesFile) {
  EXPECT_EQ(ErrorOf(""), "rules: must be a map");
  EXPECT_EQ(ErrorOf("- a\n"), "rules: line 1: must be a map");
  EXPECT_EQ(ErrorOf("rules: 3\n"), "rules: line 1: field 'rules': must be a list of rules");
  EXPECT_NE(ErrorOf("rules: [\n").find("not valid YAML"), std::string::npos);
  EXPECT_NE(ErrorOf(RuleText() + "  code: Again\n").find("is there twice"), std::string::npos);
}

TEST(RulesYamlTest, BoundsEverything) {
  EXPECT_NE(ErrorOf(std::string(kRulesTextMaxBytes + 1, ' ')).find("1 MiB"), std::string::npos);
  EXPECT_NE(ErrorOf(RuleText("message", std::string(2000, 'x'))).find("longer than 1024"), std::string::npos);
  std::string many = "{patterns: [a";
  for (size_t i = 0; i < kPatternsPerRuleMax; ++i) many += ", a";
  EXPECT_NE(ErrorOf(RuleText("match", many + "]}")).find("more than 64 items"), std::string::npos);
  EXPECT_NE(ErrorOf(std::string(100'000, '[')).find("not valid YAML"), std::string::npos) << "deep nesting";
}

// What YAML can do besides holding texts, lists and maps has surprised many of its readers.
TEST(RulesYamlTest, AnAliasBombIsSmall) {
  std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char name = 'b'; name <= 'z'; ++name) {
    const std::string before = "*" + std::string(1, static_cast<char>(name - 1));
    bomb += std::string(1, name) + ": &" + name + " [" + before;
    for (int i = 0; i < 9; ++i) bomb += ", " + before;
    bomb += "]\n";
  }
  EXPECT_NE(ErrorOf(bomb + "rules: *z\n").find("unknown field 'a'"), std::string::npos);
  EXPECT_NE(ErrorOf("rules: &r [*r]\n"), "accepted") << "a list within itself";
}

TEST(RulesYamlTest, DeepNestingOfEveryKindIsRefused) {
  for (const char* deeper : {"[", "{a: ", "- ", "? ", "[{a: "}) {
    std::string text;
    while (text.size() < 200'000) text += deeper;
    EXPECT_NE(ErrorOf(text).find("not valid YAML"), std::string::npos) << deeper;
  }
}

TEST(RulesYamlTest, ACodeIsThereOnce) {
  EXPECT_EQ(ErrorOf(RuleText() + RuleText().substr(7)), "rules: line 9: rule 'DiskFull': is there twice");
}

TEST(RulesYamlTest, NamesTheLineOfAPatternThatIsNoExpression) {
  const RulesReading reading{.base = nullptr, .check_pattern = [](std::string_view pattern) -> Status {
                               if (pattern == "(") return Fail(ErrorKind::kUsage, "it is open");
                               return {};
                             }};
  const Result<RuleSet> rules = ParseRulesYaml(RuleText("match", "{patterns: ['ok', '(']}"), reading);
  ASSERT_FALSE(rules.has_value());
  EXPECT_EQ(rules.error().message,
            "rules: line 8: rule 'DiskFull': field 'match.patterns': '(' can't be compiled: it is open");
  EXPECT_FALSE(ParseRulesYaml(RuleText() + "never_root: ['(']\n", reading).has_value());
}

TEST(RulesYamlTest, ARuleThatExistsNeedSayOnlyWhatIsDifferent) {
  const RuleSet base = ParseRulesYaml(RuleText()).value();
  const RulesReading reading{.base = &base, .check_pattern = {}};
  const Result<RuleSet> changed = ParseRulesYaml("rules: [{code: DiskFull, severity: 1}]", reading);
  ASSERT_TRUE(changed.has_value()) << changed.error().message;
  Rule expected = base.rules[0];
  expected.severity = Severity::kIsolateNode;
  EXPECT_EQ(changed->rules, std::vector<Rule>{expected});
  EXPECT_EQ(ParseRulesYaml("rules: [{code: Other, severity: 1}]", reading).error().message,
            "rules: rule 'Other': field 'category': is missing");
  EXPECT_TRUE(ParseRulesYaml("never_root: ['a']", reading).has_value());
  EXPECT_FALSE(ParseRulesYaml("{}", reading).has_value()) << "an empty file is a mistake";
}

TEST(RulesYamlTest, ATextIsItsCharactersAndNothingElse) {
  EXPECT_EQ(ErrorOf(RuleText("message", "no")), "accepted") << "a text, whatever others read into it";
  const Result<RuleSet> set = ParseRulesYaml(RuleText("message", "0o17"));
  ASSERT_TRUE(set);
  EXPECT_EQ(set->rules[0].message, "0o17");
  for (const char* value : {"no", "off", "False", "0"}) {
    EXPECT_NE(ErrorOf(RuleText("node_suspect", value)).find("must be true or false"), std::string::npos) << value;
  }
  for (const char* value : {"0x2", "2.0", "1e0", "0o2", "+2", "1_0"}) {
    EXPECT_NE(ErrorOf(RuleText("severity", value)).find("is no whole number"), std::string::npos) << value;
  }
  EXPECT_NE(ErrorOf(RuleText("message", "~")).find("must be a text"), std::string::npos);
}

TEST(RulesYamlTest, TagsMergesAndFurtherDocumentsAreRefused) {
  EXPECT_EQ(ErrorOf(RuleText("message", "!!str 'Full.'")), "accepted");
  for (const char* value : {"!!python/object/apply:os.system ['id']", "!!binary aGk=", "!own x"}) {
    EXPECT_NE(ErrorOf(RuleText("message", value)), "accepted") << value;
  }
  EXPECT_NE(ErrorOf(RuleText("<<", "{advice: x}")).find("unknown field '<<'"), std::string::npos);
  EXPECT_NE(ErrorOf(RuleText() + "---\nrules: []\n").find("more than one document"), std::string::npos);
}

}  // namespace
}  // namespace aimaster
