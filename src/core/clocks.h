// Reading the two clocks as one moment. Whoever reads one after the other may lose the processor in between, for a
// second where thousands of processes end at once, and what is computed from the pair is wrong by that much: ranks then
// seem to have died in another order than they did. Only shells read clocks; what decides gets the time as an argument.
#pragma once

#include <chrono>

#include "core/time.h"

namespace aimaster {

inline constexpr Duration kReadTogetherWithin = std::chrono::microseconds(50);
inline constexpr int kReadTogetherTries = 16;  // on a machine too busy for any of them, the best has to do

inline Monotonic MonotonicNow() { return {std::chrono::steady_clock::now().time_since_epoch()}; }
inline Wall WallNow() { return {std::chrono::system_clock::now().time_since_epoch()}; }

// What the two functions read at one time, give or take kReadTogetherWithin.
template <typename ReadMonotonic, typename ReadWall>
Moment ReadTogether(ReadMonotonic&& read_monotonic, ReadWall&& read_wall) {
  Moment best;
  Duration narrowest = Duration::max();
  Monotonic before = read_monotonic();
  for (int i = 0; i < kReadTogetherTries && narrowest > kReadTogetherWithin; ++i) {
    const Wall wall = read_wall();
    const Monotonic after = read_monotonic();
    if (after - before < narrowest) {
      narrowest = after - before;
      best = {before, wall};
    }
    before = after;
  }
  return best;
}

inline Moment Now() { return ReadTogether(MonotonicNow, WallNow); }

}  // namespace aimaster
