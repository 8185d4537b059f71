#include "detect/log_silence.h"

#include <algorithm>

namespace aimaster {

SilenceVerdict JudgeSilence(const SilenceSignals& signals, Monotonic now) {
  const Monotonic since = std::max(signals.counts_from, signals.last_output.value_or(signals.counts_from));
  const Monotonic moved = std::max(since, signals.last_progress.value_or(since));
  SilenceVerdict verdict{.since = since, .due = since + signals.interval};
  if (now < verdict.due) return verdict;
  const bool heard_in_time = signals.all_heard && *signals.all_heard >= verdict.due;
  verdict.silence = heard_in_time ? Silence::kHang : Silence::kUnsure;
  verdict.is_advancing = now < moved + signals.interval;
  if (!heard_in_time || !signals.requires_progress) return verdict;
  verdict.due = moved + signals.interval;
  if (verdict.is_advancing) {
    verdict.silence = Silence::kAdvancing;
  } else if (*signals.all_heard < verdict.due) {
    verdict.silence = Silence::kUnsure;
  }
  return verdict;
}

}  // namespace aimaster
