// Every bound on what the analysis says and keeps. What it is given is bounded by those who read it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace aimaster::c4d {

inline constexpr uint32_t kNone = UINT32_MAX;  // where an index says: there is none

// A switch that fails may stop a thousand groups at once: nobody reads a thousand verdicts.
inline constexpr size_t kVerdictsMax = 60;
inline constexpr size_t kRunsInTextMax = 8;         // of ranks, in a sentence: "0-5,7,9-12,… (812)"
inline constexpr size_t kRanksWithEvidenceMax = 4;  // of one verdict, that have a sentence of their own

// Who trails in so many groups hangs itself, whatever else it could be waiting for: one or two may be operations whose
// end its program has not asked for.
inline constexpr uint32_t kTrailsForProof = 3;

}  // namespace aimaster::c4d
