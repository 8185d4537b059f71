// JudgeLogs: what log files say about why a job failed, and who began. The judgement is that of a running job; what is
// added here is what is missing in a file: times, exit statuses, and often the names of the ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/failure.h"
#include "detect/log_evidence.h"
#include "detect/rule.h"
#include "detect/rule_table.h"

namespace aimaster {

// Would it be worth another try. kAmbiguous: what is known fits a bug as well as bad luck.
enum class RetryLabel { kRetryable, kNotRetryable, kAmbiguous };
std::string_view Name(RetryLabel label);  // "not_retryable"

struct LogJudgement {
  RetryLabel label = RetryLabel::kAmbiguous;
  FaultClass fault_class = FaultClass::kUnknown;
  std::string code;     // of the rule that fits: "CudaOutOfMemory"
  std::string message;  // one line: what the root cause printed, or what happened to it
  bool node_suspect = false;
  std::optional<uint32_t> root_rank;
  bool all_ranks = false;            // failed alike: there is no root rank
  std::string root_name;             // of the root cause, where it has a name: "rank 3", "node-a"; empty: none is known
  std::optional<LineMatch> line;     // that tells; none: how a process ended does
  std::string rule;                  // of that line or ending
  std::string meaning, advice;       // of `code`, for people; advice may be empty
  std::vector<std::string> reasons;  // the chain, in order
  size_t about_cause = 0;            // so many of them are about the cause, the others about other ranks
  bool operator==(const LogJudgement&) const = default;
};

// How a process or a whole job ended, as a person writes it: "137", "-9" (by that signal); none when it is neither.
std::optional<RankExit> ParseExitCode(std::string_view text);

// Pure. `ranks` must not be empty. `exit` is the only rank's, or, where there are several, that of whoever started
// them, and then it counts only where no rank says more.
LogJudgement JudgeLogs(const std::vector<LogRank>& ranks, const std::optional<RankExit>& exit,
                       const RuleTable& rules = RuleTable::BuiltIn());

}  // namespace aimaster
