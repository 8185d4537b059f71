// The life of an attempt, as its agent sees it.
//
//              started.json             pidfd of the shim, ended.json there
//   kClaimed ───────────────▶ kRunning ─────────────────────────────────────▶ kEnded
//      │                         │ the shim is gone without ended.json           ▲
//      └─────────────────────────┴────────────▶ kSweeping ───────────────────────┘
//                                                           nothing is left
#pragma once

#include "core/check.h"

namespace aimaster::agent {

enum class AttemptState { kClaimed, kRunning, kSweeping, kEnded };
enum class AttemptInput { kStarted, kShimEnded, kShimLost, kSwept };

inline AttemptState Next(AttemptState state, AttemptInput input) {
  switch (state) {
    case AttemptState::kClaimed:
      switch (input) {
        case AttemptInput::kStarted:
          return AttemptState::kRunning;
        case AttemptInput::kShimEnded:
          return AttemptState::kEnded;
        case AttemptInput::kShimLost:
          return AttemptState::kSweeping;
        case AttemptInput::kSwept:
          break;  // nobody sweeps what has a shim
      }
      break;
    case AttemptState::kRunning:
      switch (input) {
        case AttemptInput::kStarted:
          break;  // looked for only once
        case AttemptInput::kShimEnded:
          return AttemptState::kEnded;
        case AttemptInput::kShimLost:
          return AttemptState::kSweeping;
        case AttemptInput::kSwept:
          break;
      }
      break;
    case AttemptState::kSweeping:
      switch (input) {
        case AttemptInput::kStarted:
        case AttemptInput::kShimEnded:
        case AttemptInput::kShimLost:
          break;  // there is no shim any more
        case AttemptInput::kSwept:
          return AttemptState::kEnded;
      }
      break;
    case AttemptState::kEnded:
      break;  // nothing happens to it any more
  }
  CheckFailed(__FILE__, __LINE__, "an attempt's state has no such input");
}

}  // namespace aimaster::agent
