#include "engine/backoff.h"

#include <algorithm>

namespace aimaster {

bool IsPreemption(const Judgement& judgement) { return judgement.category == "preemption"; }

bool IsOfTheWorldOutside(const Judgement& judgement) {
  return judgement.category == "network" || judgement.category == "storage" || judgement.category == "system" ||
         IsPreemption(judgement);
}

Duration BackoffAfter(uint32_t failures) {
  if (failures < 2) return Duration::zero();
  constexpr uint32_t kDoublingsMax = 6;  // by then it is the maximum
  static_assert(kBackoffFirst * (1 << kDoublingsMax) >= kBackoffMax);
  return std::min(kBackoffMax, kBackoffFirst * (1 << std::min(failures - 2, kDoublingsMax)));
}

}  // namespace aimaster
