// ClockOffset: how far this node's wall clock is from the master's. Think of two people who shout the time across a
// valley: the answer that came back fastest says most, and is wrong by at most half its way. Averaging all answers was
// rejected: a busy second then spoils the quiet ones.
#pragma once

#include <deque>

#include "agent/limits.h"
#include "core/time.h"

namespace aimaster::agent {

struct ClockEstimate {
  Duration offset{};  // add to this node's wall times to get the master's
  Duration uncertainty = kClockUncertaintyUnknown;
};

class ClockOffset {
 public:
  // The master answers over this very machine: one clock, nothing to estimate.
  void SetShared(bool shared) { shared_ = shared; }
  // Sent at `sent` (ours), answered at `master` (its own), received at `received` (ours). An answer that came before
  // its question (the clock was stepped between them) says nothing.
  void Add(Wall sent, Wall master, Wall received);
  ClockEstimate Estimate() const;

 private:
  struct Sample {
    Duration offset;
    Duration round_trip;
  };
  bool shared_ = false;
  std::deque<Sample> samples_;
};

}  // namespace aimaster::agent
