// IntervalAdvice: what --job-hang-interval a job should have, from the words of a watchdog that was faster than we
// were.
//
// PyTorch ends a process whose collective operation takes longer than a timeout. A hang that is found before that is
// found with the call stacks of all ranks, and of the one that keeps the others waiting; after it everybody is dead. So
// the interval should be shorter than the timeout, by enough for the stacks to be taken and for a last line that was
// printed after the operation began; and not by more, since what is silent for long is not always stuck.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string_view>

#include "core/failure.h"
#include "core/fault_tolerance_parameters.h"

namespace aimaster {

// Of the watchdog that says so in this line; none: no watchdog does.
std::optional<std::chrono::milliseconds> WatchdogTimeout(std::string_view line);

// The timeout less a sixth of it, at least 150 s. None where so little is left that nothing can be advised.
std::optional<std::chrono::seconds> IntervalBefore(std::chrono::milliseconds timeout);

// From what the failed ranks said. None: there is nothing to be advised, or the job is looked after like that already.
std::optional<std::chrono::seconds> AdviseInterval(std::span<const RankFailure> failures,
                                                   const FaultToleranceParameters& parameters);

}  // namespace aimaster
