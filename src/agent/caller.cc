#include "agent/caller.h"

#include <algorithm>

namespace aimaster::agent {

std::optional<size_t> FindCaller(std::span<const LiveRank> ranks, pid_t caller,
                                 const std::function<pid_t(pid_t)>& parent_of) {
  for (int i = 0; i < kAncestorsMax && caller > 1; ++i, caller = parent_of(caller)) {
    const auto found = std::ranges::find(ranks, caller, [](const LiveRank& rank) { return rank.process.pid; });
    if (found != ranks.end()) return static_cast<size_t>(found - ranks.begin());
  }
  return std::nullopt;
}

}  // namespace aimaster::agent
