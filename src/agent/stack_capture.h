// StackCapture: takes the stacks of all ranks of a node, and of what they have started, at once. It runs in a process
// of its own (stack_helper.h): it blocks, it forks, and it reads files of /proc that may hang; the agent must do none
// of these.
//
// The order of things, for each process:
//
//   is it stuck in the kernel? ── yes ──▶ what /proc says of its threads; nothing attaches to it
//            │ no
//            ▼
//   the best tool there is ── fails ──▶ the next one ── none is left, or the kernel refuses ──▶ faulthandler, where it
//            │ stacks                                                                           is registered
//            ▼
//   whatever the tool has stopped goes on, and whatever was stopped is stopped
#pragma once

#include <string>

#include "agent/stack_order.h"
#include "stacks/capture.h"

namespace aimaster::agent {

// Returns within the order's timeout, and a moment; a process of which nothing was got is in it with the reason.
stacks::Capture CaptureStacks(const StackOrder& order);

inline constexpr const char* kStackHelperOption = "--take-stacks";
// What `aimaster-agent --take-stacks` does: an order on standard input, the document on standard output. Returns the
// exit code.
int RunStackHelper();

}  // namespace aimaster::agent
