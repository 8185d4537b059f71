// ReplaySlowness: SlowWatch, on what was written down before.
//
// While a job runs its operations come in windows of half a C4D_CONN_BW_CHECK_PERIOD. Here windows are cut from the
// recorded times: as long, or longer where a rank would not have enough operations in one to be judged. A log that is
// written in bursts has windows without anything; the next one then counts for all the time since the last.
//
// Of an operation that not all members have told nobody knows who came last. How long the others were in it counts as a
// wait of each, so that who was late somewhere else because of it is not blamed.
#pragma once

#include <span>
#include <vector>

#include "c4d/slow_watch.h"

namespace aimaster::c4d {

struct LoggedOperation {
  FinishedOperation operation;
  Duration written{};  // since 1970
};

struct SlowReplay {
  std::vector<Verdict> verdicts;  // each once, with how often it was so; the most often first
  Duration window{};
  uint32_t windows = 0;    // with operations in them
  bool is_enough = false;  // to be judged: so many windows that somebody could have been found
};

SlowReplay ReplaySlowness(std::vector<LoggedOperation> operations, std::span<const Communicator> communicators);

}  // namespace aimaster::c4d
