// Backoff: how long to wait before something is started again that fails as soon as it runs. When a file server or a
// name server is down, three starts a second use up every restart that the job may have before anybody has switched it
// on again.
//
// The first failure costs no wait, since most never come again. What is a bug of the user's is not waited for: the
// sooner the limit is reached, the sooner a person looks at it.
#pragma once

#include "core/failure.h"
#include "core/time.h"

namespace aimaster {

inline constexpr Duration kBackoffFirst = std::chrono::seconds{1};
inline constexpr Duration kBackoffMax = std::chrono::seconds{60};
inline constexpr uint32_t kFreeInARowMax = 5;  // quick pre-emptions that count for no limit

// Whether something else than the job's own code is to blame, which may get well with time.
bool IsOfTheWorldOutside(const Judgement& judgement);
// The machine was wanted for something else: nobody's fault.
bool IsPreemption(const Judgement& judgement);

// After so many quick failures in a row: none, 1 s, 2 s, 4 s … 60 s.
Duration BackoffAfter(uint32_t failures);

}  // namespace aimaster
