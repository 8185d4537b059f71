#include "journal/compare.h"

#include <algorithm>

#include "journal/job_fields.h"

namespace aimaster {

std::string DescribeDecisions(const std::vector<Decision>& decisions) {
  if (decisions.empty()) return "nothing";
  std::string text;
  for (const Decision& decision : decisions) {
    text += (text.empty() ? "'" : " and '") + decision.kind + ": " + decision.summary + "'";
  }
  return text;
}

bool LeadToTheSame(const std::vector<Decision>& a, const std::vector<Decision>& b) {
  return std::ranges::equal(a, b, {}, &Decision::kind, &Decision::kind);
}

std::string FirstDifference(const StateRest& recorded, const StateRest& derived) {
  const json before = ToJson(recorded), now = ToJson(derived);
  for (const auto& [name, value] : before.items()) {
    if (now[name] != value) return name + ": " + ToText(now[name]) + ", not " + ToText(value);
  }
  return "an instance, a node, a round, a record or a failure differs";
}

}  // namespace aimaster
