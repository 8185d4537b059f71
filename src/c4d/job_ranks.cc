#include "c4d/job_ranks.h"

#include <algorithm>

namespace aimaster::c4d {

JobRanks NumberRanks(std::span<const SeatedGroup> groups) {
  JobRanks ranks;
  for (const SeatedGroup& group : groups) {
    for (const auto& [_, process] : group.seats) {
      if (!process.empty()) ranks.of.emplace(process, Rank{});
    }
  }
  // Of several the first: programs make that of all processes before others of the same.
  const SeatedGroup* of_all = nullptr;
  for (const SeatedGroup& group : groups) {
    if (of_all != nullptr && group.size <= of_all->size) continue;
    std::map<std::string_view, uint32_t> seated;
    for (const auto& [place, process] : group.seats) {
      if (!process.empty()) seated.emplace(process, place);
    }
    const auto known = std::ranges::count_if(group.seats, [](const auto& seat) { return !seat.second.empty(); });
    if (seated.size() == ranks.of.size() && static_cast<size_t>(known) == seated.size()) of_all = &group;
  }
  if (of_all != nullptr) {
    for (const auto& [place, process] : of_all->seats) {
      if (!process.empty()) ranks.of[process] = Rank{place};
    }
    ranks.count = of_all->size;
    ranks.is_numbered = true;
    return ranks;
  }
  for (auto& [_, rank] : ranks.of) rank = Rank{ranks.count++};
  return ranks;
}

}  // namespace aimaster::c4d
