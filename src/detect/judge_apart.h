// JudgeApart judges each failed instance by itself, where instances do not depend on one another: of an Async job.
//
// Think of patients who came in the same hour: each is examined, and only who says "I caught it from him" is put down
// to the other's account. One judgement over all of them, as for a Sync job, was rejected: the others would be started
// again without anybody having looked at what they said.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/failure.h"
#include "detect/rule_table.h"

namespace aimaster {

// Of instances that failed together; what is left is judged in another call.
inline constexpr size_t kJudgedApartMax = 256;

// Pure. `failures` must not be empty. One judgement for each failed instance, never two: those that failed by their own
// fault first, in the order of their ranks, then the others, which are consequences where there is such a first one.
std::vector<Judgement> JudgeApart(std::span<const RankFailure> failures, uint32_t ranks_of_job,
                                  const RuleTable& rules = RuleTable::BuiltIn());

}  // namespace aimaster
