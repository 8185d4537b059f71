// Outlived: what a job has come through is not what it died of. A GPU that asks for a reset, a download that broke, an
// attempt before this one are in the log for good; where the training went on for many steps after it, or was started
// again, and then raised an exception of its own, that exception is the cause.
//
// Leaving the old event out in any case was rejected: of two failures the hardware explains the other one more often
// than not, and an error in it reaches the program late, as words about CUDA or a lost peer. So it takes all three: the
// event, a sign that the job went on, and then words that nothing but the program itself explains.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/failure.h"
#include "detect/rule_table.h"

namespace aimaster {

// LineMatch::rule of a line that says that the job went on: all that is before its offset had been come through. No
// rule has this name.
inline constexpr std::string_view kWentOn = "WentOn";
inline constexpr uint64_t kStepsOutlived = 20;  // after an error that hurts, a rank and its peers make one at most

// Takes what was outlived, and the signs of it, out of what the ranks of one job said. In one file: other places can't
// be compared. Answers in words, for people, what was taken out and why.
std::vector<std::string> SetAsideOutlived(std::span<std::vector<LineMatch>* const> ranks, const RuleTable& rules);
std::vector<std::string> SetAsideOutlived(std::vector<RankFailure>& failures, const RuleTable& rules);
// Whether there is anything to ask for; costs next to nothing.
bool SaysItWentOn(std::span<const LineMatch> matches);

}  // namespace aimaster
