// ExitHang says when a job that should be over is not: a rank has done its work, and others do not come to their end.
// They wait for each other in a destructor, mostly, or in the exit handler of a library.
//
// Of an instance with several ranks the first rank counts, and not the instance: it is ended when all of its ranks
// have, so a job of one instance, whatever number of ranks it has, could never hang at its exit.
#pragma once

#include <optional>

#include "core/time.h"

namespace aimaster {

struct ExitSignals {
  Duration interval{};                     // how long the job may go on
  std::optional<Monotonic> first_success;  // a rank that counts for the job's success has ended well, in this round
  std::optional<Monotonic> all_heard;      // as in SilenceSignals: whose end has not been told may have ended
};

enum class ExitHang {
  kNotYet,
  kUnsure,  // unless a node that has not told since knows better
  kHang,
};

struct ExitVerdict {
  ExitHang hang = ExitHang::kNotYet;
  std::optional<Monotonic> due;  // none: no rank has ended well yet
};

ExitVerdict JudgeExit(const ExitSignals& signals, Monotonic now);

}  // namespace aimaster
