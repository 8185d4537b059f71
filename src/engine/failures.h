// Failures: which of a storm's failures are kept, and how much of each. Thousands of ranks may fail at once, each with
// tens of kilobytes of evidence, and the one that began may come last.
//
// Think of a police station after a mass collision: every car is counted and its plate noted, but only the first
// witnesses of each kind are heard at length. The first that arrive, all kinds together, would be simpler and was
// rejected: the cause of a storm is often the last to be reported, since it writes a core or its node is slow.
//
// A class holds failures that a detector can't tell apart but by their times: on the same node, ended in the same way,
// with the same rules matched. Whichever class a detector finds the strongest, it takes its earliest member; so that
// one is never dropped, and is kept whole while there is any room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/failure.h"
#include "engine/job_state.h"

namespace aimaster {

inline constexpr size_t kWholePerClass = 8;             // heard at length, of each class
inline constexpr uint64_t kWholeBytesMax = 4 << 20;     // of the texts of all failures; beyond it the later are trimmed
inline constexpr uint64_t kEarliestBytesMax = 8 << 20;  // and beyond this also the earliest of a class
inline constexpr size_t kTrimmedTextMaxBytes = 512;     // of each text of a trimmed failure
inline constexpr size_t kTrimmedMatchesMax = 8;         // different rules that a trimmed failure keeps
inline constexpr size_t kNamesInTextMax = 8;            // of instances, in one line for people
static_assert(kTrimmedTextMaxBytes >= 2 * kAlikeTextMaxBytes, "trimmed and whole texts compare equal");

// When it began, as a detector takes it; the end of time where that is not known. Ranks order what is simultaneous.
std::pair<Wall, Rank> FailureTime(const RankFailure& failure);
std::string FailureClassOf(const RankFailure& failure);
uint64_t FailureBytes(const RankFailure& failure);

// What has to be kept of a failure that arrives now: all of it, or what a detector needs to place it. Called before the
// input is stored, so that the journal is as small as the state.
RankFailure FitFailure(const JobState& job, RankFailure failure);

// Puts it among the failures, in the place of a less telling one when they are full. Returns its index; none when it
// was only counted.
std::optional<size_t> KeepFailure(JobState& job, const RankFailure& failure);

// Those of these instances have been decided; the others stay, and none counts as dropped any more.
void ForgetFailuresOf(JobState& job, const std::set<InstanceIndex>& instances);

}  // namespace aimaster
