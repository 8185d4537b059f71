#include "c4d/verdict_words.h"

#include <utility>

#include "core/rank_set.h"

namespace aimaster::c4d {
namespace {

constexpr size_t kRanksInWordsMax = 6;
constexpr size_t kRunsMax = 20;

std::string RankList(const std::vector<Rank>& ranks) {
  std::vector<uint32_t> numbers;
  for (const Rank rank : ranks) numbers.push_back(Value(rank));
  return RankSet(std::move(numbers)).Text(kRunsMax);
}

// What they do, behind "rank 3" or "ranks 3 and 5".
std::string Deed(VerdictKind kind, bool is_one) {
  switch (kind) {
    case VerdictKind::kRankCommHang:
      return is_one ? "hangs in the communication layer" : "hang in the communication layer";
    case VerdictKind::kRankNonCommHang:
      return is_one ? "hangs outside communication, and others wait for it"
                    : "hang outside communication, and others wait for them";
    case VerdictKind::kRankCommSlow:
      return is_one ? "is slow in the communication layer" : "are slow in the communication layer";
    case VerdictKind::kRankNonCommSlow:
      return is_one ? "is slow outside communication" : "are slow outside communication";
    case VerdictKind::kCollectiveMismatch:
      return is_one ? "issued another operation than its peers" : "issued other operations than their peers";
    case VerdictKind::kCyclicWait:
      return "wait for each other in a circle";
    case VerdictKind::kNoProbeData:
      return "are not known";
  }
  return "";
}

}  // namespace

std::string RankWords(const std::vector<Rank>& ranks) {
  if (ranks.size() == 1) return "rank " + std::to_string(Value(ranks[0]));
  if (ranks.size() > kRanksInWordsMax) return "ranks " + RankList(ranks);
  std::string words = "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) {
    words += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(Value(ranks[i]));
  }
  return words;
}

std::string Sentence(VerdictKind kind, const std::vector<Rank>& ranks, bool is_group) {
  if (kind == VerdictKind::kNoProbeData) {
    return "who hangs can't be told, for nothing is known" + (ranks.empty() ? "" : " of " + RankWords(ranks));
  }
  if (ranks.empty()) return Deed(kind, true);
  if (is_group) return "one or more of " + RankWords(ranks) + ", which can't be told, " + Deed(kind, false);
  return RankWords(ranks) + " " + Deed(kind, ranks.size() == 1);
}

}  // namespace aimaster::c4d
