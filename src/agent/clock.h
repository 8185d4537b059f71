// The two clocks of this node. Only the shells read them; what decides gets the time as an argument.
#pragma once

#include <chrono>

#include "core/time.h"

namespace aimaster::agent {

inline Monotonic MonotonicNow() { return {std::chrono::steady_clock::now().time_since_epoch()}; }
inline Wall WallNow() { return {std::chrono::system_clock::now().time_since_epoch()}; }
inline Moment Now() { return {MonotonicNow(), WallNow()}; }

}  // namespace aimaster::agent
