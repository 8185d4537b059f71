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

std::string DecisionDifference(const std::vector<Decision>& recorded, const std::vector<Decision>& now) {
  const auto differs = [](const std::string& what, const std::string& before, const std::string& after) {
    return what + ": recorded " + before + ", now " + after;
  };
  if (!LeadToTheSame(recorded, now)) {
    return differs("decision", DescribeDecisions(recorded), DescribeDecisions(now));
  }
  for (size_t i = 0; i < recorded.size(); ++i) {
    const Decision &a = recorded[i], &b = now[i];
    const std::string whose = " of '" + a.kind + "'";
    if (a.summary != b.summary) return differs("summary" + whose, "'" + a.summary + "'", "'" + b.summary + "'");
    for (size_t r = 0; r < std::max(a.reasons.size(), b.reasons.size()); ++r) {
      const auto reason = [r](const Decision& of) {
        return r < of.reasons.size() ? "'" + of.reasons[r] + "'" : std::string("none");
      };
      if (reason(a) != reason(b)) return differs("reason " + std::to_string(r + 1) + whose, reason(a), reason(b));
    }
    if (a.round != b.round) {
      return differs("round" + whose, std::to_string(Value(a.round)), std::to_string(Value(b.round)));
    }
    if (a.at != b.at) return differs("time" + whose, FormatRfc3339(a.at.wall), FormatRfc3339(b.at.wall));
  }
  return "";
}

std::string StateDifference(const StoredState& recorded, const JobState& derived) {
  StoredState now = StoreState(derived);
  if (recorded.rest.placement.empty()) now.rest.placement.clear();  // an older version derived it
  if (now == recorded) return "";
  const json before_rest = ToJson(recorded.rest), now_rest = ToJson(now.rest);
  for (const auto& [name, value] : before_rest.items()) {
    if (now_rest[name] != value) return name + ": " + ToText(now_rest[name]) + ", not " + ToText(value);
  }
  return "an instance, a node, a round, a record or a failure differs";
}

}  // namespace aimaster
