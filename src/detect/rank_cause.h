// RankCause: what one rank's death says for itself, before ranks are compared.
#pragma once

#include <optional>
#include <string>

#include "core/failure.h"
#include "core/time.h"
#include "detect/rule_table.h"

namespace aimaster {

// How far a rank is to blame by its own evidence, the most first. Only ranks of the greatest standing that there is
// can be the root cause.
enum class Standing {
  kOwnFault,
  kPerhaps,      // a timeout, a polite signal from outside: a cause, or what another rank's death led to
  kConsequence,  // it lost a peer
  kSilent,       // how it ended is not known and it printed nothing of a failure
  kStopped,      // we had signalled it
  kSucceeded,    // it ended with 0
};

struct RankCause {
  const RankFailure* failure = nullptr;  // never null
  RuleIndex rule = 0;
  const LineMatch* line = nullptr;          // the line by which the rule was found; null: by how the process ended
  const LineMatch* confirmation = nullptr;  // a line that backs it up
  Standing standing = Standing::kOwnFault;
  ErrorSource source = ErrorSource::kProcess;
  std::string message;       // one line, at most kErrorTextMaxBytes, valid UTF-8
  std::optional<Wall> time;  // when it began to fail, as far as is known
};

// Pure. The failure must outlive the result. Times in the failure are on the master's clock.
RankCause CauseOf(const RankFailure& failure, const RuleTable& rules);

// "exit code 7", "killed by SIGSEGV (11), core dumped", "lost: node-1 …".
std::string DescribeEnding(const RankFailure& failure);

}  // namespace aimaster
