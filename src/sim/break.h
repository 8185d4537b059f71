// Break: ways in which the product could be wrong. Each is made around the real parts, in the simulated world, and each
// has a checker that must catch it: a checker that never complained of anything proves nothing.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace aimaster::sim {

enum class Break {
  kNone,
  kEndTooEarly,
  kStartTwice,
  kRestartOnceMore,
  kGiveUpEarly,
  kTakeAllAlong,
  kLoseExit,
  kCountTwice,
  kForgetTick,
  kOtherChance,
  kActBeforeDurable,
  kAcknowledgeFirst,
  kForgetEpoch,
  kObeyAnyone,
  kLeaveEscaped,
  kPanic,
  kDeafToTime,
  kNeverSendAgain,
  kKeepOldAddress,
  kGoodNews,
  kDeafToOutput,
  kNeverLook,
};

struct BreakInfo {
  Break kind;
  std::string_view name;
  std::string_view checker;  // that has to catch it
  std::string_view what;
};

std::span<const BreakInfo> AllBreaks();
const BreakInfo& InfoOf(Break kind);
std::optional<Break> ParseBreak(std::string_view name);

}  // namespace aimaster::sim
