#include "detect/built_in_rules.h"

#include <utility>

#include "core/check.h"
#include "detect/rule_table.h"

namespace aimaster {

const RuleTable& RuleTable::BuiltIn() {
  static const RuleTable table = [] {
    Result<RuleTable> made = Make(BuiltInRuleSet());
    CHECK(made.has_value());  // rules_compiler has tried the same
    return *std::move(made);
  }();
  return table;
}

}  // namespace aimaster
