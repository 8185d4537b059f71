// A verdict's headline in words, as it stands in the master's log, in events and in what is printed: the culprits, and
// what they do. What it rests on are the sentences of the verdict itself.
#pragma once

#include <string>
#include <vector>

#include "c4d/verdict.h"

namespace aimaster::c4d {

// "rank 3", "ranks 3, 5 and 8", "ranks 0-13,15".
std::string RankWords(const std::vector<Rank>& ranks);

// "rank 3 hangs in the communication layer". Where `is_group`, no rank of them is accused.
std::string Sentence(VerdictKind kind, const std::vector<Rank>& ranks, bool is_group);
inline std::string Sentence(const Verdict& verdict) { return Sentence(verdict.kind, verdict.ranks, verdict.is_group); }

}  // namespace aimaster::c4d
