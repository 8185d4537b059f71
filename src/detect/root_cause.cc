#include "detect/root_cause.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/check.h"
#include "detect/line_text.h"
#include "detect/rank_cause.h"

namespace aimaster {
namespace {

using Causes = std::vector<RankCause>;

constexpr size_t kOthersExplained = 8;            // the chain of reasons is for people
constexpr size_t kConsequenceTextMaxBytes = 512;  // of a detail that is no root
constexpr size_t kQuotedTextMaxBytes = 300;       // of a line inside a reason

// ---- order
// -----------------------------------------------------------------------------------------------------------

// Total, so that no result depends on the order in which failures were reported.
auto Key(const RankCause& cause) {
  const RankFailure& failure = *cause.failure;
  return std::tuple(!cause.time.has_value(), cause.time.value_or(Wall{}), cause.rule, failure.rank, failure.instance,
                    failure.attempt, failure.node, failure.exit ? ShellStatus(*failure.exit) : -1,
                    std::string_view(cause.message), failure.stopped_by_us, failure.clock_uncertainty);
}

void Sort(Causes& causes) {
  std::sort(causes.begin(), causes.end(), [](const RankCause& a, const RankCause& b) {
    if (a.standing != b.standing) return a.standing < b.standing;
    return Key(a) < Key(b);
  });
}

// Those of the candidates that no other one surely preceded. On one node one clock counts, and it is exact; over nodes
// times are as good as their uncertainty; who has no time may have been the first.
std::vector<const RankCause*> PossiblyFirst(std::span<const RankCause> candidates) {
  std::optional<Wall> surely_by;  // by then at least one had failed, on any node
  std::map<NodeIndex, Wall> first_on_node;
  for (const RankCause& cause : candidates) {
    if (!cause.time) continue;
    const Wall latest = *cause.time + cause.failure->clock_uncertainty;
    surely_by = surely_by ? std::min(*surely_by, latest) : latest;
    const auto [first, is_new] = first_on_node.emplace(cause.failure->node, *cause.time);
    if (!is_new) first->second = std::min(first->second, *cause.time);
  }
  std::vector<const RankCause*> first;
  for (const RankCause& cause : candidates) {
    const RankFailure& failure = *cause.failure;
    const bool may_be = !cause.time || (*cause.time == first_on_node.at(failure.node) &&
                                        *cause.time + -failure.clock_uncertainty <= *surely_by);
    if (may_be) first.push_back(&cause);
  }
  return first;
}

// causes is sorted; the candidates are those of the greatest standing.
std::span<const RankCause> Candidates(const Causes& causes) {
  const auto end = std::find_if(causes.begin(), causes.end(),
                                [&](const RankCause& cause) { return cause.standing != causes.front().standing; });
  return {causes.data(), static_cast<size_t>(end - causes.begin())};
}

const RankCause& RootOf(const Causes& causes) {
  const std::vector<const RankCause*> first = PossiblyFirst(Candidates(causes));
  // Where times can't decide, the strength of the evidence does: the order of the rules. Then the time, then the rank.
  return **std::min_element(first.begin(), first.end(), [](const RankCause* a, const RankCause* b) {
    if (a->rule != b->rule) return a->rule < b->rule;
    return Key(*a) < Key(*b);
  });
}

// ---- all alike
// -------------------------------------------------------------------------------------------------------

// The beginning of a message without its numbers: ranks, devices and addresses differ where the words are the same, and
// the end of a long text may have been cut off to keep it.
std::string Words(std::string_view message) {
  std::string words;
  for (char c : message.substr(0, kAlikeTextMaxBytes)) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) words += c;
    if (digit && !words.ends_with('#')) words += '#';
  }
  return words;
}

bool AllAlike(const Causes& causes, uint32_t ranks_of_job, const RuleTable& rules) {
  const RankCause& one = causes.front();
  if (ranks_of_job < 2 || one.standing > Standing::kConsequence || rules.rule(one.rule).node_suspect) return false;
  std::set<Rank> ranks;
  std::optional<Wall> first, last;
  const std::string words = Words(one.message);
  const auto status = [](const RankCause& cause) {
    return cause.failure->exit ? std::optional(ShellStatus(*cause.failure->exit)) : std::nullopt;
  };
  for (const RankCause& cause : causes) {
    if (cause.standing != one.standing || cause.rule != one.rule || status(cause) != status(one)) return false;
    if (cause.time.has_value() != one.time.has_value() || Words(cause.message) != words) return false;
    ranks.insert(cause.failure->rank);
    if (!cause.time) continue;
    first = first ? std::min(*first, *cause.time) : cause.time;
    last = last ? std::max(*last, *cause.time) : cause.time;
  }
  return ranks.size() == ranks_of_job && (!first || *last - *first <= kAllAlikeWithin);
}

// ---- words for people
// ------------------------------------------------------------------------------------------------

std::string RankName(const RankCause& cause) { return "rank " + std::to_string(Value(cause.failure->rank)); }

std::string Quote(const std::string& text) { return "'" + OneLine(text, kQuotedTextMaxBytes) + "'"; }

std::string WhatHappened(const RankCause& cause) {
  const RankFailure& failure = *cause.failure;
  std::string text = DescribeEnding(failure);
  if (failure.dump_start && failure.exit && *failure.dump_start < failure.exit->time) {
    text += ", " + FormatDuration(failure.exit->time - *failure.dump_start) + " after it had begun to write its core";
  }
  return text;
}

// How the root's time compares with the next failure that is not its own.
std::string TimeReason(const RankCause& root, const Causes& causes) {
  const std::string what = RankName(root) + ": " + WhatHappened(root);
  const RankCause* next = nullptr;
  for (const RankCause& cause : causes) {
    if (cause.failure->rank == root.failure->rank || !cause.time) continue;
    if (!next || Key(cause) < Key(*next)) next = &cause;
  }
  if (!next) return what;
  if (!root.time) return what + "; when is not known";
  const Duration lead = *next->time - *root.time;
  if (lead == Duration::zero()) return what + "; at the same time as " + RankName(*next);
  if (lead < Duration::zero()) return what + "; " + FormatDuration(-lead) + " after " + RankName(*next);
  return what + "; failed first, " + FormatDuration(lead) + " before " + RankName(*next);
}

std::string RuleReason(const Rule& rule) {
  std::string retry;
  switch (rule.retryable) {
    case Retryable::kYes:
      retry = "retryable";
      break;
    case Retryable::kNo:
      retry = "not retryable";
      break;
    case Retryable::kOncePerPlace:
      retry = "retryable once per place";
      break;
  }
  std::string text =
      "rule " + rule.code + " (" + std::string(Name(rule.category)) + ", " + retry + "): " + rule.message;
  if (!rule.advice.empty()) text += " " + rule.advice;
  return text;
}

std::string OtherReason(const RankCause& cause, const RankCause& root) {
  const std::string who = RankName(cause);
  const std::string says = cause.line ? "it says " + Quote(cause.line->line) : DescribeEnding(*cause.failure);
  switch (cause.standing) {
    case Standing::kOwnFault:
      return who + " failed too: " + says;
    case Standing::kPerhaps:
    case Standing::kConsequence:
      return who + (cause.standing == root.standing ? " failed too: " : " is a consequence: ") + says;
    case Standing::kStopped:
      return who + " was stopped by AIMaster";
    case Standing::kSucceeded:
      return who + " ended with 0";
  }
  return who;
}

std::vector<std::string> EvidenceReasons(const RankCause& cause) {
  std::vector<std::string> reasons;
  const RankFailure& failure = *cause.failure;
  if (!failure.error_file_message.empty()) {
    reasons.push_back("its error file says: " + Quote(failure.error_file_message));
  }
  if (cause.line) {
    reasons.push_back("its output says: " + Quote(cause.line->line) + " (" + cause.line->file + ", byte " +
                      std::to_string(cause.line->offset) + ")");
  } else if (!failure.last_error_line.empty()) {
    reasons.push_back("its output ends with: " + Quote(failure.last_error_line));
  }
  if (cause.confirmation) reasons.push_back("confirmed by: " + Quote(cause.confirmation->line));
  return reasons;
}

void AppendOthers(const RankCause& root, const Causes& causes, std::vector<std::string>& reasons) {
  size_t explained = 0, left = 0;
  for (const RankCause& cause : causes) {
    if (&cause == &root) continue;
    if (explained < kOthersExplained) {
      reasons.push_back(OtherReason(cause, root));
      ++explained;
    } else {
      ++left;
    }
  }
  if (left > 0) reasons.push_back("and " + std::to_string(left) + " more failures");
}

std::vector<std::string> Reasons(const RankCause& root, bool alike, const Causes& causes, const RuleTable& rules) {
  std::vector<std::string> reasons;
  if (alike) {
    reasons.push_back("all " + std::to_string(causes.size()) + " ranks failed alike: " + DescribeEnding(*root.failure) +
                      "; no single rank is the cause");
  } else {
    reasons.push_back(TimeReason(root, causes));
  }
  for (std::string& reason : EvidenceReasons(root)) reasons.push_back(std::move(reason));
  reasons.push_back(RuleReason(rules.rule(root.rule)));
  if (alike) return reasons;
  if (causes.size() > 1 && root.standing >= Standing::kConsequence) {
    reasons.push_back("no failure is anybody's own fault as far as is known: the first one is taken");
  }
  AppendOthers(root, causes, reasons);
  return reasons;
}

std::vector<FailureDetail> Details(const RankCause& root, bool alike, const Causes& causes, const RuleTable& rules) {
  std::vector<FailureDetail> details;
  const auto add = [&](const RankCause& cause) {
    if (details.size() == kDetailsMax) return;
    const bool is_root = alike || &cause == &root;
    const RankFailure& failure = *cause.failure;
    details.push_back({.rank = failure.rank,
                       .instance = failure.instance,
                       .node = failure.node,
                       .is_root = is_root,
                       .error_code = failure.exit ? ShellStatus(*failure.exit) : 0,
                       .fault = rules.rule(cause.rule).code,
                       .message = is_root && !alike ? cause.message : OneLine(cause.message, kConsequenceTextMaxBytes),
                       .source = cause.source});
  };
  add(root);
  for (const RankCause& cause : causes) {
    if (&cause != &root) add(cause);
  }
  return details;
}

}  // namespace

Judgement Judge(std::span<const RankFailure> failures, uint32_t ranks_of_job, const RuleTable& rules) {
  CHECK(!failures.empty());
  Causes causes;
  causes.reserve(failures.size());
  for (const RankFailure& failure : failures) causes.push_back(CauseOf(failure, rules));
  Sort(causes);
  const RankCause& root = RootOf(causes);
  const bool alike = AllAlike(causes, ranks_of_job, rules);
  const Rule& rule = rules.rule(root.rule);
  const RankFailure& failure = *root.failure;

  Judgement judgement;
  if (!alike) judgement.root_rank = failure.rank;
  judgement.root_instance = failure.instance;
  judgement.root_node = failure.node;
  if (failure.exit) judgement.error_code = ShellStatus(*failure.exit);
  judgement.fault = rule.code;
  judgement.category = Name(rule.category);
  judgement.message = root.message;
  judgement.source = root.source;
  judgement.retryable = rule.retryable;
  judgement.severity = rule.severity;
  judgement.node_suspect = rule.node_suspect;
  judgement.address_in_use = rule.code == kAddressInUseCode;
  judgement.never_started = !failure.exec_error.empty() && !IsWantOfResources(failure.exec_errno);
  judgement.reasons = Reasons(root, alike, causes, rules);
  judgement.details = Details(root, alike, causes, rules);
  judgement.failed_ranks = static_cast<uint32_t>(failures.size());
  return judgement;
}

}  // namespace aimaster
