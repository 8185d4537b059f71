// Backoff: how long to wait before the next dial. The first tries come fast, since a master that was just restarted is
// back within moments; the later ones are spread out at random, since ten thousand agents may wait for the same master.
#pragma once

#include <algorithm>
#include <cstdint>

#include "agent/limits.h"
#include "core/time.h"

namespace aimaster::agent {

class Backoff {
 public:
  // Between half and all of 20 ms, 50, 125, … 2 s; the caller brings the chance.
  Duration Next(uint64_t random) {
    const Duration whole = std::min<Duration>(next_, kBackoffMax);
    next_ = std::min<Duration>(next_ * 5 / 2, kBackoffMax);
    const auto half = static_cast<uint64_t>((whole / 2).count());
    return whole / 2 + Duration(static_cast<int64_t>(random % (half + 1)));
  }
  void Reset() { next_ = kBackoffFirst; }

 private:
  Duration next_ = kBackoffFirst;
};

}  // namespace aimaster::agent
