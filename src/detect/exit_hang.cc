#include "detect/exit_hang.h"

namespace aimaster {

ExitVerdict JudgeExit(const ExitSignals& signals, Monotonic now) {
  if (!signals.first_success) return {};
  const Monotonic due = *signals.first_success + signals.interval;
  if (now < due) return {ExitHang::kNotYet, due};
  const bool heard_in_time = signals.all_heard && *signals.all_heard >= due;
  return {heard_in_time ? ExitHang::kHang : ExitHang::kUnsure, due};
}

}  // namespace aimaster
