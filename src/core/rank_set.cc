#include "core/rank_set.h"

#include <algorithm>

namespace aimaster {

RankSet::RankSet(std::vector<uint32_t> ranks) {
  std::ranges::sort(ranks);
  for (const uint32_t rank : ranks) {
    if (!runs_.empty() && rank <= runs_.back().second) continue;  // once more
    ++size_;
    if (!runs_.empty() && rank - runs_.back().second == 1) {
      runs_.back().second = rank;
    } else {
      runs_.emplace_back(rank, rank);
    }
  }
}

std::string RankSet::Text(size_t runs_max) const {
  std::string text;
  for (size_t i = 0; i < runs_.size(); ++i) {
    if (i == runs_max) return text + ",… (" + std::to_string(size_) + ")";
    const auto& [first, last] = runs_[i];
    if (i > 0) text += ',';
    text += std::to_string(first);
    if (last != first) text += '-' + std::to_string(last);
  }
  return text;
}

}  // namespace aimaster
