// Any text either is a bounded set of rules or gives an error that says something.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "detect/rules_yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto rules = aimaster::ParseRulesYaml({reinterpret_cast<const char*>(data), size});
  if (!rules) {
    if (rules.error().message.empty()) std::abort();
    return 0;
  }
  for (const aimaster::Rule& rule : rules->rules) {
    if (rule.code.empty() || rule.patterns.size() > aimaster::kPatternsPerRuleMax) std::abort();
  }
  return 0;
}
