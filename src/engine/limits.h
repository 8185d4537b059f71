// Limits: what follows from a judgement: restart, or fail, and why. The policy is asked first, then the limits, in the
// order in which a person would name them.
#pragma once

#include <string>
#include <vector>

#include "engine/job_state.h"

namespace aimaster {

// An "address already in use" this soon after a round's start is a start failure, not a failure of the job.
inline constexpr Duration kStartFailureWithin = std::chrono::minutes{2};
inline constexpr uint32_t kStartRetriesMax = 5;
inline constexpr Duration kQuickFailureWithin = std::chrono::minutes{1};

enum class Verdict { kRestart, kRetryStart, kFail };

struct Ruling {
  Verdict verdict = Verdict::kFail;
  std::string summary;               // one line: what is done and why
  std::vector<std::string> reasons;  // the limits that were looked at, in order
  bool is_charged = true;            // kRestart of the job: against --max-num-of-job-restart
  Duration wait{};                   // kRestart: from now until it may start again
};

// Counts the root cause in the job's tallies (same error, failed workers, quick failures), then rules.
Ruling RuleOnFailure(JobState& job, const Judgement& judgement, Monotonic now);

// The same for one instance of an Async job; kRestart restarts it alone. The number of restarts of the job, and whether
// it may be restarted at all, make no difference.
Ruling RuleOnInstance(JobState& job, const Judgement& judgement, Monotonic now);

// The same for a hang, which no policy governs: it is nobody's failure that could be called retryable or not.
Ruling RuleOnHang(JobState& job, const Judgement& judgement);

}  // namespace aimaster
