// Every rule knows its own lines, and no rule takes a line of a healthy job for a failure. The lines are data, beside
// the rules: whoever adds a rule adds a line that a program really printed.
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "detect/line_text.h"
#include "detect/pattern_matcher.h"
#include "detect/taken_back.h"

namespace aimaster {
namespace {

std::filesystem::path RulesFolder() {
  const char* source = std::getenv("AIMASTER_SOURCE");
  return std::filesystem::path(source ? source : ".") / "rules";
}

class RuleExamplesTest : public testing::Test {
 protected:
  PatternMatcher::Found Match(const std::string& line) {
    std::string buffer;
    const std::string_view clean = StripRankPrefixes(CleanLine(line, buffer));
    PatternMatcher::Found found = matcher_.Match(clean);
    found.line = StandingRule(matcher_, clean, found);
    return found;
  }
  std::string CodeOf(std::optional<RuleIndex> rule) { return rule ? matcher_.rules().rule(*rule).code : "nothing"; }

  PatternMatcher matcher_;
};

TEST_F(RuleExamplesTest, EveryRuleKnowsItsLines) {
  const YAML::Node examples = YAML::LoadFile((RulesFolder() / "examples.yaml").string());
  for (const auto& [code, lines] : examples["rules"].as<std::map<std::string, std::vector<std::string>>>()) {
    ASSERT_TRUE(matcher_.rules().Find(code)) << "examples.yaml names " << code << ", which is no rule";
    for (const std::string& line : lines) {
      const PatternMatcher::Found found = Match(line);
      EXPECT_EQ(CodeOf(found.line), code) << line;
      EXPECT_FALSE(found.never_root) << code << ": a line of never_root hides " << line;
    }
  }
  for (const auto& [code, lines] : examples["frames"].as<std::map<std::string, std::vector<std::string>>>()) {
    for (const std::string& line : lines) EXPECT_EQ(CodeOf(Match(line).frame), code) << line;
  }
  for (const Rule& rule : matcher_.rules().set().rules) {
    EXPECT_TRUE(rule.patterns.empty() || examples["rules"][rule.code]) << "give " << rule.code << " an example";
    EXPECT_TRUE(rule.frames.empty() || examples["frames"][rule.code]) << "give " << rule.code << " an example";
  }
}

TEST_F(RuleExamplesTest, NoRuleTakesALineOfAHealthyJobForAFailure) {
  std::ifstream file(RulesFolder() / "ordinary.txt");
  ASSERT_TRUE(file) << "run under ctest, or set AIMASTER_SOURCE to the source tree";
  int lines = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.starts_with("# ") || line == "#") continue;
    const PatternMatcher::Found found = Match(line);
    EXPECT_TRUE(found.never_root || !found.line) << CodeOf(found.line) << ": " << line;
    ++lines;
  }
  EXPECT_GT(lines, 150);
}

}  // namespace
}  // namespace aimaster
