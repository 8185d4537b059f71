// The dumps of all ranks, one for each at most, as an observation.
//
// Which counters are facts about a rank, and which only seem to be, is decided here:
//   - Of a whole dump, a group's counters are those of pg_status, and what newer entries say. In a group that is in
//     none of its lists, though all were there, the rank has issued nothing.
//   - In a group that carries point-to-point operations pg_status counts those, so only entries tell the collectives.
//   - Of a dump that is not whole, the open operations that were read are facts: the rank waits there. Its counters
//     stop at the last of those.
// A member without a row is one of whom that is not known.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>

#include "c4d/observation.h"
#include "c4d/rank_dump.h"
#include "core/time.h"

namespace aimaster::c4d {

// Hangs are dumped within minutes to an hour; what is further apart is a clock that is wrong, or another run.
inline constexpr Duration kClocksApartMax = std::chrono::hours(2);

// Dumps ascending by rank.
Observation MakeObservation(std::span<const RankDump> dumps, const GroupTable& groups, Duration stood_for);

// The middle one of the times at which the ranks recorded last; 0: none tells.
int64_t MiddleNewest(std::span<const RankDump> dumps);

}  // namespace aimaster::c4d
