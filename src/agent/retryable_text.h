// RetryableText: looks for the job's own texts in what a dead rank printed last. It is done where the output is, at the
// moment of the death, since output files are bounded and nobody else keeps the tail.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "agent/attempt_files.h"

namespace aimaster::agent {

// The first of the texts that the last kLogTailMaxBytes of its stderr or stdout hold, byte for byte; empty: none.
std::string FindRetryableText(const Claim& claim, uint32_t local, std::span<const std::string> texts);

}  // namespace aimaster::agent
