// LogSilence says when a job has been quiet for too long.
//
// Think of listening to footsteps in the next room: one quiet walker means nothing, all quiet means go and look. And
// who stands behind a closed door has not been heard to be quiet: as long as a node has not told how it is there,
// nothing is concluded. Judging each instance by its own rhythm was considered; it restarts healthy jobs whose rank 0
// alone prints.
//
// All times are the master's. Nothing is remembered here: the same signals give the same answer.
#pragma once

#include <optional>

#include "core/time.h"

namespace aimaster {

struct SilenceSignals {
  Duration interval{};  // how long all may be silent
  // Silence counts from here: the last rank's exec of the round, the moment at which the interval was set, or the end
  // of a time in which nobody listened.
  Monotonic counts_from;
  std::optional<Monotonic> last_output;    // of any rank
  std::optional<Monotonic> last_progress;  // a rank told a higher step
  // All nodes on which ranks run have told what they knew at this time, or later. None: some have not.
  std::optional<Monotonic> all_heard;
  bool requires_progress = false;  // it is no hang while steps go on
};

enum class Silence {
  kNotYet,     // not for the interval
  kUnsure,     // for the interval, unless a node that has not told since knows better
  kAdvancing,  // nobody prints, and steps go on: no hang, since progress is required to stand still too
  kHang,
};

struct SilenceVerdict {
  Silence silence = Silence::kNotYet;
  Monotonic since;            // the last sign of life
  Monotonic due;              // when, if nothing happens before, the answer will be, or was, another one
  bool is_advancing = false;  // steps went on within the interval
};

SilenceVerdict JudgeSilence(const SilenceSignals& signals, Monotonic now);

}  // namespace aimaster
