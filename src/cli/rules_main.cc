// The program `aimaster-rules`: a user's rules file in, compiled rules out (detect/compiled_rules.h). `aimaster` starts
// it when a file is given that it has not seen before.
//
// A program of its own, since what reads YAML and compiles regular expressions is five times larger than all of
// `aimaster`, which starts for every job and every listing; and since somebody's rules can then take no more than the
// time and memory that is allowed here.
#include <sys/resource.h>

#include <iostream>
#include <iterator>
#include <string>
#include <string_view>

#include "detect/built_in_rules.h"
#include "detect/compiled_rules.h"
#include "detect/pattern_compiler.h"
#include "detect/rule_merge.h"
#include "detect/rule_table.h"
#include "detect/rules_yaml.h"

namespace aimaster {
namespace {

constexpr int kExitRefused = 2;
constexpr rlim_t kProcessorSecondsMax = 120;
constexpr rlim_t kMemoryMaxBytes = rlim_t{4} << 30;

void Limit(__rlimit_resource resource, rlim_t most) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_max, most);
  setrlimit(resource, &limit);
}

Result<CompiledRules> Compile(std::string_view text) {
  const RuleSet& built_in = RuleTable::BuiltIn().set();
  Result<RuleSet> own = ParseRulesYaml(text, {.base = &built_in, .check_pattern = CheckPattern});
  if (!own) return std::unexpected(own.error());
  if (const Result<RuleTable> table = RuleTable::Make(MergeRules(built_in, *own)); !table) {
    return std::unexpected(table.error());
  }
  Result<CompiledPatterns> patterns = CompilePatterns(NewPatterns(built_in, *own));
  if (!patterns) return std::unexpected(patterns.error());
  return CompiledRules{
      .build = ThisBuild(), .source = std::string(text), .rules = std::move(*own), .patterns = std::move(*patterns)};
}

// The file is named by who knows its name.
int Refuse(std::string_view message) {
  constexpr std::string_view kPrefix = "rules: ";
  if (message.starts_with(kPrefix)) message.remove_prefix(kPrefix.size());
  std::cerr << message << "\n";
  return kExitRefused;
}

}  // namespace
}  // namespace aimaster

int main() {
  using namespace aimaster;
  Limit(RLIMIT_CPU, kProcessorSecondsMax);
  Limit(RLIMIT_AS, kMemoryMaxBytes);
  const std::string text((std::istreambuf_iterator<char>(std::cin)), {});
  const Result<CompiledRules> rules = Compile(text);
  if (!rules) return Refuse(rules.error().message);
  std::cout << Encode(*rules) << std::flush;
  return std::cout ? 0 : 1;
}
