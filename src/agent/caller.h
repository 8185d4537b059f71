// Caller: which rank a process belongs to that speaks to us. A training's own processes call, and their data loaders,
// and the scripts that started them: whoever descends from a rank speaks for it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <span>

#include "agent/core_dump_watch.h"

namespace aimaster::agent {

inline constexpr int kAncestorsMax = 64;

// The index of the rank that `caller` is or descends from. `parent_of` gives 0 where there is none.
std::optional<size_t> FindCaller(std::span<const LiveRank> ranks, pid_t caller,
                                 const std::function<pid_t(pid_t)>& parent_of);

}  // namespace aimaster::agent
