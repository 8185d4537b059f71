#include "detect/rule_table.h"

#include <cerrno>
#include <utility>

namespace aimaster {
namespace {

std::string Quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

}  // namespace

// The file system is among them: what is full or failing here and now may be neither elsewhere or later.
bool IsWantOfResources(int error) {
  switch (error) {
    case EAGAIN:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOSPC:
    case EDQUOT:
    case EROFS:
    case EIO:
    case ESTALE:
    case ETXTBSY:
      return true;
    default:
      return false;
  }
}

Result<RuleTable> RuleTable::Make(RuleSet set) {
  RuleTable table;
  table.by_ending_.fill(kNone);
  table.by_exit_code_.fill(kNone);
  table.by_signal_.fill(kNone);
  table.set_ = std::move(set);

  const auto claim = [](RuleIndex& slot, RuleIndex rule) { return slot == kNone ? (slot = rule, true) : false; };
  for (RuleIndex index = 0; index < table.size(); ++index) {
    const Rule& rule = table.rule(index);
    if (!table.by_code_.emplace(rule.code, index).second) {
      return Fail(ErrorKind::kUsage, "rule " + Quoted(rule.code) + " is there twice: give each rule a code of its own");
    }
    for (int code : rule.exit_codes) {
      if (code < 0 || code >= static_cast<int>(kExitCodes) || !claim(table.by_exit_code_[code], index)) {
        return Fail(ErrorKind::kUsage, "rule " + Quoted(rule.code) + ": exit code " + std::to_string(code) +
                                           " is out of range 0 … 255 or belongs to another rule already");
      }
    }
    for (int signal : rule.signals) {
      if (signal < 1 || signal >= static_cast<int>(kSignals) || !claim(table.by_signal_[signal], index)) {
        return Fail(ErrorKind::kUsage, "rule " + Quoted(rule.code) + ": signal " + std::to_string(signal) +
                                           " is out of range 1 … 64 or belongs to another rule already");
      }
    }
    for (Ending ending : rule.endings) {
      if (!claim(table.by_ending_[static_cast<size_t>(ending)], index)) {
        return Fail(ErrorKind::kUsage, "rule " + Quoted(rule.code) + ": the ending " + Quoted(Name(ending)) +
                                           " belongs to another rule already");
      }
    }
  }
  for (size_t ending = 0; ending < kEndings; ++ending) {
    if (table.by_ending_[ending] == kNone) {
      return Fail(ErrorKind::kUsage,
                  "no rule has the ending " + Quoted(Name(static_cast<Ending>(ending))) + ": add one that does");
    }
  }
  for (std::string_view code : {kUnknownErrorCode, kAddressInUseCode}) {
    if (!table.Find(code)) return Fail(ErrorKind::kUsage, "there is no rule " + Quoted(code) + ": add it");
  }
  table.unknown_error_ = *table.Find(kUnknownErrorCode);
  return table;
}

std::optional<RuleIndex> RuleTable::Find(std::string_view code) const {
  const auto found = by_code_.find(code);
  return found == by_code_.end() ? std::nullopt : std::optional(found->second);
}

RuleIndex RuleTable::ForEnding(const RankFailure& failure) const {
  if (failure.orphaned != Duration::zero()) return For(Ending::kOrphaned);
  if (!failure.exec_error.empty()) {
    if (IsWantOfResources(failure.exec_errno)) return For(Ending::kNoResources);
    const bool not_found = failure.exit && failure.exit->code == 127;
    return For(not_found ? Ending::kCommandNotFound : Ending::kCommandNotExecutable);
  }
  if (!failure.exit) {
    if (failure.node_lost) return For(Ending::kNodeLost);
    return failure.lost_reason.empty() ? unknown_error_ : For(Ending::kProcessLost);
  }
  const RankExit& exit = *failure.exit;
  if (exit.out_of_memory) return For(Ending::kOutOfMemoryKill);
  if (exit.code) {
    const int code = *exit.code;
    const bool known = code >= 0 && code < static_cast<int>(kExitCodes) && by_exit_code_[code] != kNone;
    return known ? by_exit_code_[code] : For(Ending::kAnyExitCode);
  }
  const int signal = exit.signal.value_or(0);
  const bool known = signal > 0 && signal < static_cast<int>(kSignals) && by_signal_[signal] != kNone;
  return known ? by_signal_[signal] : For(Ending::kAnySignal);
}

}  // namespace aimaster
