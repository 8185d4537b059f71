// Who kept the others waiting: what watchdogs of several ranks say about a collective operation that did not end.
//
// Think of a dinner where all but one have raised their glass: the one who hasn't is asked why, not the one who
// complained first. Blaming the first watchdog was rejected: it belongs to the rank that waited longest, which is never
// the cause.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/failure.h"

namespace aimaster {

// What one rank says about one group of ranks. A field that its library does not tell is empty.
struct CollectiveReport {
  Rank rank{};
  std::string group;                     // "0(default_pg)"; the same on all its ranks
  std::optional<int64_t> ordinal;        // the group's number on this rank: groups of one kind have the same one
  std::optional<int64_t> timed_out;      // number of the operation that did not end
  std::optional<int64_t> last_enqueued;  // the greatest that the rank had begun
  std::string operation;                 // "ALLREDUCE"
  std::optional<int64_t> elements_in, elements_out;
  std::vector<Rank> accused;  // ranks that the library itself names as those that did not come
  bool operator==(const CollectiveReport&) const = default;
};

// The reports in a rank's telling lines, one per group and operation, in the order of the lines.
std::vector<CollectiveReport> ReadCollectiveReports(Rank rank, std::span<const LineMatch> lines);

struct OddRanks {
  enum class How {
    kBehind,     // it never began the operation for which the others wait
    kSilent,     // it is the one that says nothing while the others wait
    kDifferent,  // at the same number of the same group it calls something else: the programs differ
    kNamed,      // the library itself says that it did not come
  };
  How how = How::kBehind;
  std::vector<Rank> ranks;  // the one to ask first, first; empty: the ranks differ and none is in the minority
  std::string words;        // one sentence
};

// Pure; the order of the reports makes no difference. `silent` are ranks that said nothing of any collective and whose
// own death says nothing either. Nothing where no rank stands out: all wait for the same, say.
std::optional<OddRanks> FindOddRanks(std::span<const CollectiveReport> reports, std::span<const Rank> silent,
                                     uint32_t ranks_of_job);

}  // namespace aimaster
