// A conclusion in words for people: the chain of reasons that `explain` prints.
#include <utility>

#include "core/count.h"
#include "detect/conclusion.h"
#include "detect/line_text.h"

namespace aimaster {
namespace {

constexpr size_t kOthersExplained = 8;       // the chain is for people
constexpr size_t kQuotedTextMaxBytes = 300;  // of a line inside a reason

std::string RankName(const RankCause& cause, const LogView& log) {
  const RankFailure& failure = *cause.failure;
  if (failure.mpi_rank) return "MPI rank " + std::to_string(failure.mpi_rank->rank);
  if (failure.is_launcher) return "the launcher";
  return log.name_of ? log.name_of(failure.rank) : "rank " + std::to_string(Value(failure.rank));
}

std::string Quote(const std::string& text) { return "'" + OneLine(text, kQuotedTextMaxBytes) + "'"; }

// A log does not tell how a process ended.
bool IsOnlyHeard(const RankCause& cause) {
  const RankFailure& failure = *cause.failure;
  return !failure.exit && failure.lost_reason.empty() && failure.exec_error.empty() &&
         failure.orphaned == Duration::zero();
}

std::string AsFarAsHeard(const RankCause& cause) {
  switch (cause.standing) {
    case Standing::kOwnFault:
      return "has a fault of its own";
    case Standing::kPerhaps:
      return "may have begun, or have followed";
    case Standing::kConsequence:
      return "only lost a peer, as far as is known";
    case Standing::kSilent:
      return "says nothing";
    case Standing::kStopped:
    case Standing::kSucceeded:
      return "did not fail";
  }
  return "";
}

std::string WhatHappened(const RankCause& cause) {
  const RankFailure& failure = *cause.failure;
  std::string text = DescribeEnding(failure);
  if (failure.dump_start && failure.exit && *failure.dump_start < failure.exit->time) {
    text += ", " + FormatDuration(failure.exit->time - *failure.dump_start) + " after it had begun to write its core";
  }
  if (failure.mpi_rank && failure.mpi_rank->launcher_status) {
    text += " (process " + std::to_string(failure.mpi_rank->pid) + " itself; the launcher passed it on as " +
            std::to_string(*failure.mpi_rank->launcher_status) + ")";
  }
  return text;
}

// How the root's time compares with the next failure that is not its own.
std::string TimeReason(const RankCause& root, const Causes& causes, const LogView& log) {
  if (IsOnlyHeard(root)) return RankName(root, log) + " " + AsFarAsHeard(root);
  const std::string what = RankName(root, log) + ": " + WhatHappened(root);
  const auto key = [](const RankCause& cause) { return std::pair(*cause.time, cause.failure->rank); };
  const RankCause* next = nullptr;
  for (const RankCause& cause : causes) {
    if (cause.failure->rank == root.failure->rank || !cause.time) continue;
    if (!next || key(cause) < key(*next)) next = &cause;
  }
  if (!next) return what;
  if (!root.time) return what + "; when is not known";
  const Duration lead = *next->time - *root.time;
  if (lead == Duration::zero()) return what + "; at the same time as " + RankName(*next, log);
  if (lead < Duration::zero()) return what + "; " + FormatDuration(-lead) + " after " + RankName(*next, log);
  return what + "; failed first, " + FormatDuration(lead) + " before " + RankName(*next, log);
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

std::string OtherReason(const RankCause& cause, const RankCause& root, const LogView& log) {
  const std::string who = RankName(cause, log);
  const std::string says = cause.line ? "it says " + Quote(cause.line->line) : DescribeEnding(*cause.failure);
  switch (cause.standing) {
    case Standing::kOwnFault:
      return who + " failed too: " + says;
    case Standing::kPerhaps:
    case Standing::kConsequence:
      return who + (cause.standing == root.standing ? " failed too: " : " is a consequence: ") + says;
    case Standing::kSilent:
      return who + " says nothing";
    case Standing::kStopped:
      return who + " was stopped by AIMaster";
    case Standing::kSucceeded:
      return who + " ended with 0";
  }
  return who;
}

std::vector<std::string> EvidenceReasons(const RankCause& cause, const LogView& log) {
  std::vector<std::string> reasons;
  const RankFailure& failure = *cause.failure;
  if (!failure.error_file_message.empty()) {
    reasons.push_back("its error file says: " + Quote(failure.error_file_message));
  }
  if (cause.line) {
    const std::string place = log.name_of ? "" : ", byte " + std::to_string(cause.line->offset);
    reasons.push_back("its output says: " + Quote(cause.line->line) + " (" + cause.line->file + place + ")");
  } else if (!failure.last_error_line.empty()) {
    reasons.push_back("its output ends with: " + Quote(failure.last_error_line));
  }
  if (cause.confirmation) reasons.push_back("confirmed by: " + Quote(cause.confirmation->line));
  return reasons;
}

void AppendOthers(const RankCause& root, const Causes& causes, const LogView& log, std::vector<std::string>& reasons) {
  size_t explained = 0, left = 0, quiet = 0;
  for (const RankCause& cause : causes) {
    if (&cause == &root) continue;
    if (IsOnlyHeard(cause) && !cause.line) {
      ++quiet;
    } else if (explained < kOthersExplained) {
      reasons.push_back(OtherReason(cause, root, log));
      ++explained;
    } else {
      ++left;
    }
  }
  if (left > 0) reasons.push_back("and " + std::to_string(left) + " more failures");
  if (quiet > 0) reasons.push_back("the log of " + Count(quiet, "other rank") + " says nothing of a failure");
}

}  // namespace

Chain ReasonsOf(const Conclusion& conclusion, const Causes& causes, const RuleTable& rules, const LogView& log) {
  const RankCause& witness = *conclusion.witness;
  std::vector<std::string> reasons;
  if (conclusion.odd) reasons.push_back(conclusion.odd->words);
  if (conclusion.alike) {
    const std::string ending = IsOnlyHeard(witness) ? "" : ": " + DescribeEnding(*witness.failure);
    reasons.push_back("all " + std::to_string(causes.size()) + " ranks failed alike" + ending +
                      "; no single rank is the cause");
  } else {
    reasons.push_back(TimeReason(witness, causes, log));
  }
  for (std::string& reason : EvidenceReasons(witness, log)) reasons.push_back(std::move(reason));
  reasons.push_back(RuleReason(rules.rule(conclusion.rule)));
  const size_t about_cause = reasons.size();
  if (conclusion.alike) return {std::move(reasons), about_cause};
  if (!conclusion.odd && causes.size() > 1 && witness.standing >= Standing::kConsequence) {
    reasons.push_back("no failure is anybody's own fault as far as is known: the first one is taken");
  }
  AppendOthers(witness, causes, log, reasons);
  return {std::move(reasons), about_cause};
}

}  // namespace aimaster
