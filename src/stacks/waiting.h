// What a stack waits for, told by the names in it. In a job that hangs nearly every rank waits, and all but a few wait
// for somebody else: who waits for its peers, for its data loader or for its next piece of work is a victim, and of two
// equally rare stacks the other one is the culprit's.
//
// It is a guess, by names that are widely used, and only ever changes the order in which stacks are shown.
#pragma once

#include <span>

#include "stacks/frame.h"

namespace aimaster::stacks {

enum class Waits {
  kNot,     // not for anything that we know
  kWork,    // for something to do: a pool's thread, a data loader that nobody asks
  kChild,   // for a process that it has started
  kLoader,  // for what its data loaders load
  kPeers,   // for other ranks: within a collective
  kKernel,  // stopped by a signal, or in uninterruptible sleep: whatever the program was about
};

// The words for it behind "waits for", and the like: "waits for other ranks"; empty for kNot.
std::string_view Describe(Waits waits);

Waits WhatItWaitsFor(std::span<const Frame> stack);
// Whether its innermost frame is one of those in which threads wait.
bool IsAtRest(std::span<const Frame> stack);

// The frame that says where a person should look: the innermost one of their own code. None of a stack without frames.
const Frame* PlaceOf(std::span<const Frame> stack);

// "load (train.py:7)", "poll (libc.so.6)": with the last part of the path.
std::string Describe(const Frame& frame);
std::string_view LastPart(std::string_view path);

}  // namespace aimaster::stacks
