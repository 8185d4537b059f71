#include "agent/clock_offset.h"

#include <algorithm>

namespace aimaster::agent {

void ClockOffset::Add(Wall sent, Wall master, Wall received) {
  const Duration round_trip = received - sent;
  if (round_trip < Duration::zero() || round_trip > kClockUncertaintyUnknown) return;
  samples_.push_back({(master - sent) - round_trip / 2, round_trip});
  if (samples_.size() > kClockSamples) samples_.pop_front();
}

ClockEstimate ClockOffset::Estimate() const {
  if (shared_) return {Duration::zero(), Duration::zero()};
  const auto best = std::ranges::min_element(samples_, {}, &Sample::round_trip);
  if (best == samples_.end()) return {};
  return {best->offset, best->round_trip / 2};
}

}  // namespace aimaster::agent
