// Call stacks: ordering them, and what becomes of the answer. A hang alone waits for them (transition_hang.cc), and
// nothing that they say changes a decision: they are for people.
#include "core/count.h"
#include "engine/orders.h"
#include "engine/transition.h"

namespace aimaster {

void Transition::On(const StacksRequested& input) { CaptureStacksOf("asked for by " + input.by); }

// False when there is nothing to take stacks of. One capture at a time: a second one would only find the tools of the
// first in its way.
bool Transition::CaptureStacksOf(std::string reason) {
  if (!RoundIsUp() || job_.tallies.live == 0) return false;
  StackCapture& stacks = job_.stacks;
  if (stacks.is_under_way) return true;
  ++stacks.number;
  stacks.is_under_way = true;
  stacks.reason = std::move(reason);
  stacks.deadline = now_.monotonic + Duration(job_.spec.timing.stack_timeout);
  Act(CaptureOrder(job_));
  return true;
}

void Transition::On(const StacksCaptured& input) {
  if (job_.phase == Phase::kNew || job_.phase == Phase::kEnded) return;
  StackCapture& stacks = job_.stacks;
  if (!stacks.is_under_way || input.capture != stacks.number) return;
  stacks.is_under_way = false;
  stacks.deadline.reset();
  if (!input.path.empty()) stacks.path = input.path;
  Tell("aimaster.hang.stacks", "",
       "stacks of " + std::to_string(input.ranks_answered) + " of " + Count(input.ranks_asked, "rank") + " (" +
           stacks.reason + "): " + input.summary);
  if (job_.hang) DecideHang(&input);
}

void Transition::GiveUpOnStacks() {
  job_.stacks.is_under_way = false;
  job_.stacks.deadline.reset();
  Tell("aimaster.hang.stacks", "",
       "no stacks (" + job_.stacks.reason + "): they were not there within --stack-timeout");
  if (job_.hang) DecideHang(nullptr);
}

}  // namespace aimaster
