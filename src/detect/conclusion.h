// Conclusion: what Judge has found out, before it is put into words. Of root_cause.cc alone, and of
// conclusion_words.cc, which puts it into words.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "detect/collective_progress.h"
#include "detect/rank_cause.h"
#include "detect/root_cause.h"

namespace aimaster {

using Causes = std::vector<RankCause>;  // the most to blame first

// The witness is the failure that tells; the blamed one, if there is one, is the one that made it fail. They are the
// same except where a collective did not end.
struct Conclusion {
  const RankCause* witness = nullptr;  // never null
  const RankCause* blamed = nullptr;   // null: no single rank, or one that has not failed
  std::optional<Rank> blamed_rank;
  std::optional<RankPlace> blamed_place;  // of a rank that has not failed
  RuleIndex rule = 0;
  bool alike = false;  // all ranks failed with the same words
  std::optional<OddRanks> odd;
};

// The chain, and how much of it is about the cause itself.
struct Chain {
  std::vector<std::string> reasons;
  size_t about_cause = 0;
};
Chain ReasonsOf(const Conclusion& conclusion, const Causes& causes, const RuleTable& rules, const LogView& log);

}  // namespace aimaster
