#include "agent/rank_report.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "agent/error_file.h"
#include "agent/limits.h"
#include "agent/small_file.h"
#include "detect/line_scanner.h"

namespace aimaster::agent {
namespace {

struct Tail {
  std::string bytes;
  uint64_t offset = 0;  // of the first of them in the file
};

// The last bytes of a regular file, from the start of a line.
Tail ReadTail(const std::string& path) {
  Tail tail;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return tail;
  struct stat status{};
  if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
    const auto size = static_cast<uint64_t>(status.st_size);
    tail.offset = size - std::min<uint64_t>(size, kLogTailMaxBytes);
    tail.bytes.resize(size - tail.offset);
    const ssize_t got = ::pread(fd, tail.bytes.data(), tail.bytes.size(), static_cast<off_t>(tail.offset));
    tail.bytes.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  }
  ::close(fd);
  const size_t line_end = tail.offset == 0 ? std::string::npos : tail.bytes.find('\n');
  if (line_end != std::string::npos) {
    tail.bytes.erase(0, line_end + 1);
    tail.offset += line_end + 1;
  }
  return tail;
}

// The matches of a text go into the report; returns its last telling line.
std::string ScanText(const Tail& tail, const std::string& file, PatternMatcher& matcher, v1::RankExited& report) {
  if (tail.bytes.empty()) return {};
  LineScanner scanner(matcher, file);
  scanner.Feed(tail.bytes, tail.offset);
  scanner.Finish();
  for (const aimaster::LineMatch& match : scanner.Matches()) {
    if (report.matches_size() >= static_cast<int>(kMatchesPerRankMax)) break;
    v1::LineMatch& added = *report.add_matches();
    added.set_rule(match.rule);
    added.set_line(SafeText(match.line));
    added.set_file(match.file);
    added.set_offset(match.offset);
  }
  return SafeText(scanner.last_error_line());
}

std::string Scan(const Claim& claim, const std::string& file, PatternMatcher& matcher, v1::RankExited& report) {
  return ScanText(ReadTail(claim.log_directory + "/" + file), file, matcher, report);
}

// A rank that we ended by a signal has nothing of its own to say, and there may be many of them at once.
bool IsOurDoing(const RankExitFile& exit) {
  return (exit.stopped_by_us || exit.orphaned_ms > 0) && (exit.signal == SIGTERM || exit.signal == SIGKILL);
}

}  // namespace

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
  report.set_out_of_memory(end.out_of_memory);
  report.set_dump_start_ns(end.dump_start_ns);
  report.set_clock_offset_ns(clock.offset.count());
  report.set_clock_uncertainty_ns(clock.uncertainty.count());
  if (end.exit && (end.exit->code == 0 || IsOurDoing(*end.exit))) return report;

  const std::string name = "rank" + std::to_string(end.rank.local);
  // The error file first: it is what the program itself chose to say, and the number of matches is bounded.
  const auto text = ReadSmallFile(directory.File(name + ".error.json"), kErrorFileMaxBytes);
  if (const auto error = text ? ParseErrorFile(*text) : std::nullopt) {
    report.set_error_file_message(error->message);
    report.set_error_file_time_ns(error->time_ns);
    ScanText({.bytes = error->message + "\n"}, name + ".error.json", matcher, report);
  }
  const std::string error_line = Scan(claim, name + ".err", matcher, report);
  const std::string output_line = Scan(claim, name + ".out", matcher, report);
  report.set_last_error_line(error_line.empty() ? output_line : error_line);
  return report;
}

}  // namespace aimaster::agent
