#include "detect/rank_cause.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "detect/error_words.h"
#include "detect/line_text.h"

namespace aimaster {
namespace {

std::string SignalName(int signal) {
  // Linux numbers; strsignal would give prose, in the language of the machine.
  static constexpr std::array<std::string_view, 32> kNames{
      "",          "SIGHUP",  "SIGINT",    "SIGQUIT", "SIGILL",   "SIGTRAP", "SIGABRT", "SIGBUS",
      "SIGFPE",    "SIGKILL", "SIGUSR1",   "SIGSEGV", "SIGUSR2",  "SIGPIPE", "SIGALRM", "SIGTERM",
      "SIGSTKFLT", "SIGCHLD", "SIGCONT",   "SIGSTOP", "SIGTSTP",  "SIGTTIN", "SIGTTOU", "SIGURG",
      "SIGXCPU",   "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO",   "SIGPWR",  "SIGSYS"};
  const std::string number = std::to_string(signal);
  if (signal <= 0 || signal >= static_cast<int>(kNames.size())) return "signal " + number;
  return std::string(kNames[static_cast<size_t>(signal)]) + " (" + number + ")";
}

int RolePriority(RuleRole role) {
  switch (role) {
    case RuleRole::kRoot:
      return 0;
    case RuleRole::kEither:
      return 1;
    case RuleRole::kCascade:
      return 2;
    case RuleRole::kConfirmation:
      return 3;
  }
  return 3;
}

struct Telling {
  const LineMatch* line = nullptr;
  RuleIndex rule = 0;
};

// A process beneath a torchrun made it fail, and ended by more than an exception in Python. All that the processes
// print comes in one stream, and torchrun keeps one error file: exceptions in them are other processes'.
bool IsSpeechless(const RankFailure& failure) { return failure.torchrun && failure.exit && failure.exit->code != 1; }

// The strongest line of each role that is no old news; the first such line.
std::array<Telling, 4> StrongestLines(const RankFailure& failure, const RuleTable& rules) {
  std::array<Telling, 4> best;
  for (const LineMatch* match : FreshMatches(failure)) {
    const std::optional<RuleIndex> rule = rules.Find(match->rule);
    if (!rule || (IsSpeechless(failure) && rules.rule(*rule).role == RuleRole::kCascade)) continue;
    Telling& slot = best[static_cast<size_t>(RolePriority(rules.rule(*rule).role))];
    if (!slot.line || *rule < slot.rule) slot = {match, *rule};
  }
  return best;
}

// Under mpirun an exit code says less than elsewhere: its own is anything that it has made of others', and a rank has
// that of the library's error handler. What lost a peer, though, may have been printed by any other rank.
bool OutweighsCode(RuleIndex text, const RankFailure& failure, const RuleTable& rules) {
  if (!failure.exit || !failure.exit->code || !failure.exec_error.empty()) return false;
  if (failure.mpi_rank) return rules.rule(text).role != RuleRole::kCascade;
  return failure.is_launcher;
}

Standing StandingOf(const RankFailure& failure, RuleRole role, bool by_line) {
  if (failure.stopped_by_us) return Standing::kStopped;
  // A log file of a rank of which nothing else is known: its last words may be those of a healthy rank.
  const bool only_words = !failure.exit && failure.lost_reason.empty() && failure.exec_error.empty() &&
                          failure.orphaned == Duration::zero() && !by_line;
  if (only_words) return SoundsLikeAnError(failure.last_error_line) ? Standing::kPerhaps : Standing::kSilent;
  if (failure.orphaned != Duration::zero()) return Standing::kOwnFault;
  if (failure.exit && IsSuccess(*failure.exit)) return Standing::kSucceeded;
  switch (role) {
    case RuleRole::kRoot:
      return Standing::kOwnFault;
    case RuleRole::kEither:
    case RuleRole::kConfirmation:
      return Standing::kPerhaps;
    case RuleRole::kCascade:
      return Standing::kConsequence;
  }
  return Standing::kOwnFault;
}

// Where several processes beneath a torchrun failed, its error file may be that of one that only lost a peer.
bool TellsOfTheCause(const RankFailure& failure, const RankCause& cause, const RuleTable& rules) {
  if (failure.error_file_message.empty() || IsSpeechless(failure)) return false;
  if (!cause.line || rules.rule(cause.rule).role == RuleRole::kCascade) return true;
  return std::none_of(failure.matches.begin(), failure.matches.end(), [&](const LineMatch& match) {
    const auto rule = rules.Find(match.rule);
    return match.file.ends_with(".error.json") && rule && rules.rule(*rule).role == RuleRole::kCascade;
  });
}

// Where it is not the instance's own process.
std::string WhoEnded(const RankFailure& failure) {
  return failure.mpi_rank ? "MPI rank " + std::to_string(failure.mpi_rank->rank) + ": " : "";
}

std::string MessageOf(const RankFailure& failure, const LineMatch* line, bool by_error_file) {
  if (!failure.exec_error.empty()) return failure.exec_error;
  if (failure.orphaned != Duration::zero()) return DescribeEnding(failure);
  if (by_error_file) return failure.error_file_message;
  if (line) return line->line;
  const std::string ending = WhoEnded(failure) + DescribeEnding(failure);
  const std::string& last = failure.last_error_line;
  if (last.empty() || IsSpeechless(failure)) return ending;
  // Who exits says why; who is killed says nothing about it, so its last line is quoted as what it is.
  if (failure.exit && failure.exit->code) return last;
  return failure.exit ? ending + "; its last line: " + last : failure.lost_reason.empty() ? last : ending;
}

std::string HowItEnded(const RankFailure& failure) {
  if (!failure.exec_error.empty()) return "could not be started: " + failure.exec_error;
  if (!failure.exit) return failure.lost_reason.empty() ? "how it ended is not known" : "lost: " + failure.lost_reason;
  const RankExit& exit = *failure.exit;
  const bool is_named = failure.torchrun && failure.torchrun->rank;
  const std::string who = is_named ? "rank " + std::to_string(*failure.torchrun->rank) + " of its torchrun: " : "";
  if (exit.code) return who + "exit code " + std::to_string(*exit.code);
  std::string text = who + "killed by " + SignalName(exit.signal.value_or(0));
  if (exit.out_of_memory) text += ", out of memory";
  if (exit.core_dumped) text += ", core dumped";
  return text;
}

}  // namespace

std::string DescribeEnding(const RankFailure& failure) {
  if (failure.orphaned == Duration::zero()) return HowItEnded(failure);
  return "no master was there for " + FormatDuration(failure.orphaned) +
         " (--orphan-timeout), so its node stopped it: " + HowItEnded(failure);
}

RankCause CauseOf(const RankFailure& failure, const RuleTable& rules) {
  const std::array<Telling, 4> lines = StrongestLines(failure, rules);
  const Telling& confirming = lines[3];
  const auto strongest = std::find_if(lines.begin(), lines.begin() + 3, [](const Telling& each) { return each.line; });
  Telling text = strongest == lines.begin() + 3 ? Telling{} : *strongest;

  RankCause cause;
  cause.failure = &failure;
  cause.rule = rules.ForEnding(failure);
  cause.confirmation = confirming.line;
  const bool ending_is_silent = rules.rule(cause.rule).code == kUnknownErrorCode;
  if (!text.line && ending_is_silent) text = confirming;
  if (text.line && (text.rule < cause.rule || ending_is_silent || OutweighsCode(text.rule, failure, rules))) {
    cause.rule = text.rule;
    cause.line = text.line;
  }
  if (cause.confirmation == cause.line) cause.confirmation = nullptr;
  cause.standing = StandingOf(failure, rules.rule(cause.rule).role, cause.line != nullptr);
  cause.source = cause.line ? ErrorSource::kLog : failure.node_lost ? ErrorSource::kNode : ErrorSource::kProcess;
  const bool by_error_file = TellsOfTheCause(failure, cause, rules);
  cause.message = OneLine(MessageOf(failure, cause.line, by_error_file), kErrorTextMaxBytes);
  cause.time = BeganAt(failure);
  return cause;
}

}  // namespace aimaster
