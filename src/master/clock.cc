#include "master/clock.h"

#include <algorithm>

#include "core/clocks.h"

namespace aimaster {

Moment MasterClock::Now() const {
  const Moment now = aimaster::Now();
  return {now.monotonic + shift_, now.wall};
}

void MasterClock::ContinueAfter(const Moment& last) {
  const Moment now = Now();
  if (now.monotonic >= last.monotonic) return;  // the same boot
  shift_ += last.monotonic - now.monotonic + std::max(now.wall - last.wall, Duration::zero());
}

}  // namespace aimaster
