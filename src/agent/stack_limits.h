// The bounds and rhythms of taking stacks on a node.
#pragma once

#include <chrono>
#include <cstddef>

#include "stacks/limits.h"
#include "wire/limits.h"

namespace aimaster::agent {

// What the message holds beside the document.
static_assert(stacks::kNodeDocumentMaxBytes + 64 * kKibibyte < kMessageToMasterMax);

inline constexpr size_t kProcessesPerRankMax = 256;

// A thread that is in uninterruptible sleep each time one looks does not wait for a disk that works.
inline constexpr int kStuckLooks = 4;
inline constexpr std::chrono::milliseconds kStuckLookEvery{60};

// Until the kernel has taken what a dead tool held out of its hands.
inline constexpr int kLetGoLooks = 50;
inline constexpr std::chrono::milliseconds kLetGoLookEvery{2};

// After a tool was killed, or the process that takes stacks: how often one looks for what was held, how long after the
// last of them is gone, and at most.
inline constexpr std::chrono::milliseconds kReleaseLookEvery{20};
inline constexpr std::chrono::milliseconds kReleaseQuiet{200};
inline constexpr std::chrono::milliseconds kReleaseMax{2'000};
static_assert(kReleaseLookEvery < kReleaseQuiet && kReleaseQuiet < kReleaseMax);

// Of what is left of the time, for a tool behind which another one could be tried.
inline constexpr double kShareOfFirstTool = 0.6;
inline constexpr size_t kToolOutputMaxBytes = stacks::kDumpMaxBytes;
inline constexpr size_t kToolErrorMaxBytes = 16 << 10;
inline constexpr size_t kToolReadAtOnceBytes = 1 << 20;  // more than a pipe holds

// How long a handler of faulthandler may take to write, and when it counts as done.
inline constexpr std::chrono::milliseconds kFallbackMax{2'000};
inline constexpr std::chrono::milliseconds kFallbackQuiet{60};
inline constexpr std::chrono::milliseconds kFallbackLookEvery{10};

// What the process that takes stacks may need beyond --stack-timeout, to end tools and write its answer.
inline constexpr std::chrono::milliseconds kHelperSlack{2'000};
inline constexpr size_t kStackOrderMaxBytes = 8 << 20;

}  // namespace aimaster::agent
