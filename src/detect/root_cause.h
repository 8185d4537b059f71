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
#include <string>

#include "core/failure.h"
#include "detect/rule_table.h"

namespace aimaster {

// Failures of all ranks with the same fault, code and words within this time have no root rank.
inline constexpr Duration kAllAlikeWithin = std::chrono::seconds(10);

// Where a rank lives that has not failed.
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

// Where a log is all that there is, and no time is known: in one file, what comes first was first.
struct LogView {
  // How many ranks have to fail alike for all to have: those that are not in the log may only have been left out.
  uint32_t ranks_alike = 0;
  // What to call one: its number may be only ours. Empty: it is no log.
  std::function<std::string(Rank)> name_of;
};

// A judgement with what it rests on.
struct RootCause {
  Judgement judgement;
  size_t about_cause = 0;               // so many of its reasons are about the cause; the others about other ranks
  bool all_alike = false;               // that is why there is no root rank
  RuleIndex rule = 0;                   // of the failure that tells; judgement.fault may say more than it alone does
  const LineMatch* line = nullptr;      // by which that rule was found, in the failures; null: by how a process ended
  const RankFailure* teller = nullptr;  // never null
  bool has_own_fault = false;           // of the failure that tells: nobody need have made it fail
};
RootCause FindRootCause(std::span<const RankFailure> failures, uint32_t ranks_of_job, const RuleTable& rules,
                        const PlaceOfRank& place_of, const LogView& log);

}  // namespace aimaster
