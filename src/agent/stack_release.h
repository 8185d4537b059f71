// StackRelease: after a process that takes stacks was killed, whatever its tools held goes on. One look is not enough:
// who is held by a tool when it dies is set going by the kernel, and stopped a moment later by the signal with which
// the tool had attached.
#pragma once

#include <chrono>
#include <vector>

#include "agent/process_identity.h"
#include "agent/stack_order.h"

namespace aimaster::agent {

class StackRelease {
 public:
  using Clock = std::chrono::steady_clock;

  // Kills the helper and its tools, if they live. Who was stopped before stays so.
  StackRelease(const ProcessIdentity& helper, const std::vector<StackTarget>& targets,
               const std::vector<ProcessIdentity>& stopped_before);

  // Sets going what is stopped. True once nobody is left who could stop more, or kReleaseMax is over; to be called
  // every kReleaseLookEvery until then.
  bool Look(Clock::time_point now);

 private:
  std::vector<ProcessIdentity> dying_;  // the helper and its tools
  std::vector<ProcessIdentity> held_;   // the targets and what they have started
  Clock::time_point until_;
  Clock::time_point busy_;  // when somebody was last seen to die or to be held
};

}  // namespace aimaster::agent
