#include "sim/break.h"

#include <algorithm>

namespace aimaster::sim {
namespace {

constexpr BreakInfo kBreaks[] = {
    {Break::kNone, "none", "", "nothing is broken"},
    {Break::kEndTooEarly, "end-too-early", "one-life",
     "an agent says that an attempt has ended when it was told to stop it"},
    {Break::kStartTwice, "start-twice", "one-life", "an agent starts an attempt again where one is claimed already"},
    {Break::kRestartOnceMore, "restart-once-more", "restart-limit",
     "the master believes the limit of restarts to be one higher"},
    {Break::kGiveUpEarly, "give-up-early", "restart-limit",
     "the master believes the limit of restarts to be one lower"},
    {Break::kTakeAllAlong, "take-all-along", "alone", "the master believes every job to be Sync"},
    {Break::kLoseExit, "lose-exit", "exits", "an agent keeps a failed rank's exit to itself"},
    {Break::kCountTwice, "count-twice", "exits", "an agent reports an old exit again as that of the next attempt"},
    {Break::kForgetTick, "forget-tick", "replay", "a deadline that fired is not journaled"},
    {Break::kOtherChance, "other-chance", "replay", "something random gets in beside the seed"},
    {Break::kActBeforeDurable, "act-before-durable", "durable-first",
     "the master acts as soon as the journal has begun to write"},
    {Break::kAcknowledgeFirst, "acknowledge-first", "durable-first", "the master acknowledges reports as they come in"},
    {Break::kForgetEpoch, "forget-epoch", "fencing", "an agent does not keep the greatest epoch over its death"},
    {Break::kObeyAnyone, "obey-anyone", "fencing", "an agent takes every master for the newest"},
    {Break::kLeaveEscaped, "leave-escaped", "leftovers", "an agent does not look for what a dead shim left"},
    {Break::kPanic, "panic", "decided-deaths", "an agent stops its ranks when its connection breaks"},
    {Break::kDeafToTime, "deaf-to-time", "progress", "the master's deadlines never fire"},
    {Break::kNeverSendAgain, "never-send-again", "progress", "a command that was sent once is not sent again"},
    {Break::kKeepOldAddress, "keep-old-address", "progress",
     "an older master that writes its address last is not corrected"},
    {Break::kDeafToOutput, "deaf-to-output", "hangs", "an agent does not hear what ranks print"},
    {Break::kNeverLook, "never-look", "hangs", "an agent does not look when it is asked to"},
    {Break::kGoodNews, "good-news", "success", "an agent reports exit code 0 for a rank that failed"},
};

}  // namespace

std::span<const BreakInfo> AllBreaks() { return std::span(kBreaks).subspan(1); }

const BreakInfo& InfoOf(Break kind) { return *std::ranges::find(kBreaks, kind, &BreakInfo::kind); }

std::optional<Break> ParseBreak(std::string_view name) {
  const auto found = std::ranges::find(AllBreaks(), name, &BreakInfo::name);
  return found == AllBreaks().end() ? std::nullopt : std::optional(found->kind);
}

}  // namespace aimaster::sim
