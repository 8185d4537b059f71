#include "master/clock.h"

#include <algorithm>

namespace aimaster {

Moment MasterClock::Now() const {
  return {Monotonic{std::chrono::steady_clock::now().time_since_epoch() + shift_},
          Wall{std::chrono::system_clock::now().time_since_epoch()}};
}

void MasterClock::ContinueAfter(const Moment& last) {
  const Moment now = Now();
  if (now.monotonic >= last.monotonic) return;  // the same boot
  shift_ += last.monotonic - now.monotonic + std::max(now.wall - last.wall, Duration::zero());
}

}  // namespace aimaster
