// Tidings: what the ranks of a node have told that counts until they tell something newer: how far they are, and how
// long they may be silent. Pure: the time goes in.
//
// The interval is one value and not a stack. Each process keeps what it has set before and says so again when a section
// of it ends; at the bottom it says "the job's own". So whichever of two ranks leaves last, the job's own holds then.
// A stack of all ranks' sections here was rejected: one that was killed in a section would never leave it.
//
// Which value is the newest is told by the caller's clock, not by the order in which we read: calls come on connections
// of their own, and two that wait at the same time may be read in either order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "agent/attempt_files.h"
#include "core/time.h"

namespace aimaster::agent {

// How long all may be silent, in one round.
struct HangSetting {
  int64_t interval_ms = 0;  // kHangIntervalOffMs, kHangIntervalOwnMs or more
  uint64_t set_at_ns = 0;   // by the clock of this boot
  uint32_t round = 0;
  bool operator==(const HangSetting&) const = default;
};

class Tidings {
 public:
  using RankKey = std::pair<AttemptKey, uint32_t>;  // by local rank

  // Of all ranks together.
  struct Progress {
    uint64_t step = 0;  // the greatest
    Monotonic advanced;
    std::optional<uint64_t> checkpoint_step;  // of the newest checkpoint
    Monotonic checkpoint_at;
    std::optional<double> loss;  // of the newest step that had one
  };

  void SetStep(RankKey rank, uint64_t step, std::optional<double> loss, Monotonic now);
  void SetCheckpoint(RankKey rank, uint64_t step, Monotonic now);
  std::optional<uint64_t> StepOf(RankKey rank) const;
  // Of those that have not been forgotten; none: nobody has told any.
  std::optional<Progress> Overall() const;
  // Whether the rank may say something to people now; counts it.
  bool MaySpeak(RankKey rank, Monotonic now);
  void Forget(AttemptKey attempt);

  // Whether it counts. One that is older than what is known doesn't; one of a later round always does.
  bool SetHang(const HangSetting& setting);
  // A round has begun, or is known to run: what was set in an earlier one is void. Whether anything was.
  bool BeginRound(uint32_t round);
  const std::optional<HangSetting>& hang() const { return hang_; }

 private:
  struct Told {
    std::optional<uint64_t> step;
    std::optional<uint64_t> checkpoint_step;
    Monotonic advanced;
    Monotonic checkpoint_at;
    std::optional<double> loss;
    Monotonic loss_at;
  };
  struct Budget {
    Duration spent{};   // each message costs kMessageEvery, or kMessageSeldom
    uint32_t said = 0;  // up to kMessagesSoon
    Monotonic since;
  };

  std::map<RankKey, Told> told_;
  std::map<RankKey, Budget> budgets_;
  std::optional<HangSetting> hang_;
};

// When something was said, by the caller's own word where it can be true: it may have waited for us to read it.
uint64_t SaidAtNs(std::optional<uint64_t> callers, Monotonic now);

}  // namespace aimaster::agent
