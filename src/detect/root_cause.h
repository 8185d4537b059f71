// Judge finds out who began. Think of a line of dominoes seen after the fall: those that say "I was pushed" are put
// aside, and of the rest the one that fell first is asked why.
//
// By time alone was rejected: a rank that writes a core of some gigabytes, or whose node is lost, is seen last. By text
// alone was rejected too: most failures say nothing that others don't say as well.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "core/failure.h"
#include "detect/rule_table.h"

namespace aimaster {

// Failures of all ranks with the same fault, code and words within this time have no root rank.
inline constexpr Duration kAllAlikeWithin = std::chrono::seconds(10);

// Where a rank lives that has not failed.
struct RankPlace {
  InstanceIndex instance{};
  NodeIndex node{};
};
using PlaceOfRank = std::function<std::optional<RankPlace>(Rank)>;

// Pure: no clock, no I/O. The order of the failures makes no difference. `failures` must not be empty; their times are
// on the master's clock, give or take clock_uncertainty. `ranks_of_job` is the world size.
//
// When all ranks failed alike, root_rank is none, root_instance and root_node are those of the first one, and every
// detail is a root. When nobody has a fault of its own and a collective operation did not end, the rank that kept the
// others waiting is the root, also one that has not failed: `place_of` says where such a one lives; without it, or
// where it does not know, only a reason names it.
Judgement Judge(std::span<const RankFailure> failures, uint32_t ranks_of_job,
                const RuleTable& rules = RuleTable::BuiltIn(), const PlaceOfRank& place_of = {});

}  // namespace aimaster
