#include "agent/rank_report.h"

#include <signal.h>

#include "agent/error_file.h"
#include "agent/limits.h"
#include "agent/mpi_launch.h"
#include "agent/small_file.h"
#include "detect/launcher_words.h"
#include "detect/line_scanner.h"

namespace aimaster::agent {
namespace {

void Add(const std::vector<aimaster::LineMatch>& matches, v1::RankExited& report) {
  for (const aimaster::LineMatch& match : matches) {
    if (report.matches_size() >= static_cast<int>(kMatchesPerRankMax)) return;
    v1::LineMatch& added = *report.add_matches();
    added.set_rule(match.rule);
    added.set_line(SafeText(match.line));
    added.set_file(match.file);
    added.set_offset(match.offset);
  }
}

// A torchrun ends with 1 whatever its processes ended with. It says so in a table, and that is what counts.
void TakeTorchrunAtItsWord(const std::optional<TorchrunFailure>& failure, v1::RankExited& report) {
  if (!failure || report.code() != 1) return;
  if (failure->exit_code < 0) {
    report.set_signal(-failure->exit_code);
  } else {
    report.set_code(failure->exit_code);
  }
  v1::Torchrun& torchrun = *report.mutable_torchrun();
  torchrun.set_pid(failure->torchrun.pid);
  if (failure->torchrun.rank) torchrun.set_rank(*failure->torchrun.rank);
}

void DropMatches(v1::RankExited& report, bool (*is_second_hand)(std::string_view line)) {
  auto& matches = *report.mutable_matches();
  matches.erase(std::remove_if(matches.begin(), matches.end(),
                               [&](const v1::LineMatch& match) { return is_second_hand(match.line()); }),
                matches.end());
}

// What mpirun says of ranks whose own ends we would know.
bool IsAboutMpiRank(std::string_view line) { return IsLauncherWord(line) && !IsDaemonWord(line); }

}  // namespace

bool HasSomethingToSay(const RankEnd& end) {
  if (!end.exit) return true;
  const RankExitFile& exit = *end.exit;
  if (exit.code == 0) return false;
  return !((exit.stopped_by_us || exit.orphaned_ms > 0) && (exit.signal == SIGTERM || exit.signal == SIGKILL));
}

v1::RankExited MakeRankReport(const AttemptDirectory& directory, const Claim& claim, const RankEnd& end,
                              const ClockEstimate& clock, PatternMatcher& matcher, std::optional<Moment> now) {
  v1::RankExited report;
  report.mutable_id()->set_instance(claim.key.instance);
  report.mutable_id()->set_attempt(claim.key.attempt);
  report.set_rank(end.rank.rank);
  report.set_local(end.rank.local);
  if (!end.exit) {
    report.set_lost_reason(SafeText(end.lost_reason));
    report.set_exec_errno(end.exec_errno);
    if (end.exec_errno != 0) report.set_exec_error(report.lost_reason());
  } else {
    if (end.exit->code) report.set_code(*end.exit->code);
    if (end.exit->signal) report.set_signal(*end.exit->signal);
    report.set_core_dumped(end.exit->core);
    report.set_stopped_by_us(end.exit->stopped_by_us);
    report.set_exec_error(end.exit->exec_error);
    report.set_exec_errno(end.exit->exec_errno);
    report.set_orphaned_ms(end.exit->orphaned_ms);
    report.set_exit_time_ns(now ? ExitTimeNs(*end.exit, *now) : end.exit->time_ns);
  }
  if (end.mpi_rank) *report.mutable_mpi_rank() = *end.mpi_rank;
  report.set_out_of_memory(end.out_of_memory);
  report.set_dump_start_ns(end.dump_start_ns);
  report.set_clock_offset_ns(clock.offset.count());
  report.set_clock_uncertainty_ns(clock.uncertainty.count());
  if (!HasSomethingToSay(end)) return report;

  Add(ScanText(matcher, end.mpi_words, "mpirun"), report);
  const std::string name = "rank" + std::to_string(end.rank.local);
  // The error file first: it is what the program itself chose to say, and the number of matches is bounded.
  const auto text = ReadSmallFile(directory.File(name + ".error.json"), kErrorFileMaxBytes);
  if (const auto error = text ? ParseErrorFile(*text) : std::nullopt) {
    report.set_error_file_message(error->message);
    report.set_error_file_time_ns(error->time_ns);
    Add(ScanText(matcher, error->message, name + ".error.json"), report);
  }
  Add(end.words.matches, report);
  TakeTorchrunAtItsWord(end.words.torchrun, report);
  if (report.has_torchrun()) DropMatches(report, IsTorchrunWord);
  report.set_last_error_line(SafeText(end.words.last_line));
  if (HasWatchedMpiRanks(directory)) DropMatches(report, IsAboutMpiRank);
  return report;
}

}  // namespace aimaster::agent
