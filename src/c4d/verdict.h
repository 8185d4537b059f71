// Verdict: what the analysis of communication concludes, and what it rests on. Kinds and levels have the names of PAI's
// C4D; what follows from each level is the engine's affair.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "core/time.h"

namespace aimaster::c4d {

enum class VerdictKind : uint8_t {
  kRankCommHang,        // it hangs in the communication layer
  kRankNonCommHang,     // it hangs outside, in its program or before the device got there, and others wait for it
  kRankCommSlow,        // it is slow in the communication layer
  kRankNonCommSlow,     // it is slow outside
  kCollectiveMismatch,  // members issued different operations under one number: each waits for what never comes
  kCyclicWait,          // groups wait for each other in a circle, and for nobody else
  kNoProbeData,         // nothing is known of them: said, and not taken for health
};
std::string_view Name(VerdictKind kind);  // "RankCommHang"

enum class Level : uint8_t { kInfo, kWarning, kError };
std::string_view Name(Level level);  // "Info"

struct Verdict {
  VerdictKind kind = VerdictKind::kNoProbeData;
  Level level = Level::kInfo;
  // The culprits alone, ascending; who only waits is evidence. Of kRankCommHang, where no member is behind the others,
  // the whole group: then `is_group` says that no rank can be named, and nothing may be isolated.
  std::vector<Rank> ranks;
  bool is_group = false;
  std::optional<uint32_t> communicator;  // in the observation; none: it is not about one
  std::string operation;                 // "AllGather of 4096 BFloat16"; or empty
  std::optional<uint64_t> sequence;
  std::optional<Duration> since;      // for how long it has been so
  std::vector<Rank> waiting;          // who waits for them, ascending
  std::vector<std::string> evidence;  // sentences: counters, operations, who waits for whom
};

// The times of hangs, of C4D_HANG_TIMEOUT and C4D_HANG_TIMES.
struct HangTiming {
  Duration timeout = std::chrono::seconds(10);
  uint32_t times = 18;
  Duration error_after() const {  // as good as never, where the product is beyond all times
    return timeout > Duration::max() / times ? Duration::max() : timeout * times;
  }
};

}  // namespace aimaster::c4d
