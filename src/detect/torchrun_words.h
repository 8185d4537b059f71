// TorchrunWords: what an inner torchrun says about the death of its processes. Its own exit code is always 1, so how
// they ended stands only in the table that it prints at its end:
//
//   ============================================================
//   train.py FAILED
//   ------------------------------------------------------------
//   Failures:
//   [1]:
//     time      : 2026-11-30_05:24:35
//     host      : vm
//     rank      : 1 (local_rank: 1)
//     exitcode  : -9 (pid: 23449)
//     …
//   ------------------------------------------------------------
//   Root Cause (first observed failure):
//   [0]:
//     …
//
// "First observed" is to be taken by the word: it looks every few seconds, at one process after the other, so among
// processes that died between two looks it names the first in its list. A rank that was killed then hides behind one
// that lost its connection to it. So all entries are read, and who ended by more than an exception goes first.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/failure.h"

namespace aimaster {

struct TorchrunFailure {
  Torchrun torchrun;
  int exit_code = 0;  // of the process beneath it, as Python tells it: −9 is signal 9
  bool operator==(const TorchrunFailure&) const = default;
};

// What made torchrun fail, out of the table that the text ends with: what follows a table was said by somebody else,
// who went on and then failed of something else. Where several processes ended with an exception each, none is named:
// which of them was first only their words can tell.
std::optional<TorchrunFailure> FindTorchrunFailure(std::string_view text);

// Whether a line is torchrun's about the end of one of its processes: second-hand where its table is known.
bool IsTorchrunWord(std::string_view line);

}  // namespace aimaster
