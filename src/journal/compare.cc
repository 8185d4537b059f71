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

std::string StateDifference(const StoredState& recorded, const JobState& derived) {
  const StoredState now = StoreState(derived);
  if (now == recorded) return "";
  const json before_rest = ToJson(recorded.rest), now_rest = ToJson(now.rest);
  for (const auto& [name, value] : before_rest.items()) {
    if (now_rest[name] != value) return name + ": " + ToText(now_rest[name]) + ", not " + ToText(value);
  }
  return "an instance, a node, a round, a record or a failure differs";
}

}  // namespace aimaster
