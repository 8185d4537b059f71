#include "detect/launcher_words.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace aimaster {
namespace {

std::string_view WithoutBlanks(std::string_view line) {
  const size_t start = line.find_first_not_of(" \t");
  return start == std::string_view::npos ? std::string_view{} : line.substr(start);
}

bool Holds(std::string_view line, std::string_view words) { return line.find(words) != std::string_view::npos; }

template <size_t kCount>
bool HoldsAny(std::string_view line, const std::array<std::string_view, kCount>& words) {
  return std::any_of(words.begin(), words.end(), [line](std::string_view each) { return Holds(line, each); });
}

// "mpirun.openmpi noticed that process rank 2 with PID 0 on node vm exited on signal 9 (Killed)."
bool IsOfMpirun(std::string_view line) {
  static constexpr std::array<std::string_view, 2> kWords{" noticed that process rank ",
                                                          " detected that one or more processes exited with "};
  return HoldsAny(line, kWords);
}

bool IsRule(std::string_view line) { return line.find_first_not_of("-=") == std::string_view::npos; }

bool IsBoxed(std::string_view line) {
  static constexpr std::array<std::string_view, 5> kWords{"BAD TERMINATION OF ONE OF", " RUNNING AT ",
                                                          "EXIT CODE: ", "CLEANING UP REMAINING PROCESSES",
                                                          "YOU CAN IGNORE THE BELOW CLEANUP"};
  return IsRule(line) || HoldsAny(line, kWords);
}

const RankFailure* FirstMpiRank(const std::vector<RankFailure>& failures) {
  const RankFailure* first = nullptr;
  for (const RankFailure& failure : failures) {
    if (!failure.mpi_rank || !failure.exit) continue;
    if (!first || failure.exit->time < first->exit->time) first = &failure;
  }
  return first;
}

RankFailure* LauncherWithoutRank(std::vector<RankFailure>& failures) {
  const auto found = std::ranges::find_if(
      failures, [](const RankFailure& f) { return f.is_launcher && !f.mpi_rank && !f.stopped_by_us; });
  return found == failures.end() ? nullptr : &*found;
}

bool FailedByItself(const RankFailure& failure) {
  return !failure.is_launcher && !failure.stopped_by_us && !(failure.exit && IsSuccess(*failure.exit));
}

}  // namespace

// "[proxy:0:0@host0] HYD_pmcd_pmip_control_cmd_cb (pm/pmiserv/pmip_cb.c:899): assert (!closed) failed"
bool IsDaemonWord(std::string_view line) { return line.starts_with("[proxy:") || line.starts_with("[mpiexec@"); }

bool IsLauncherWord(std::string_view line) {
  line = WithoutBlanks(line);
  if (line.size() < 2) return false;
  switch (line[0]) {
    case 'm':
    case 'p':
      return (line.starts_with("mpi") || line.starts_with("prte") || line.starts_with("prun")) && IsOfMpirun(line);
    case '[':
      return IsDaemonWord(line);
    case '=':
      return IsBoxed(line);
    case '-':
      return IsRule(line);
    case 'P':
      return line.starts_with("Primary job  terminated normally, but") || line.starts_with("Process name: [[") ||
             line.starts_with("Process name: [prterun") || line.starts_with("Please see the FAQ page for debugging");
    case 'E':
      return line.starts_with("Exit code:    ");
    case 'a':
      return line.starts_with("a non-zero exit code. Per user-direction");
    case 't':
      return line.starts_with("the job to be terminated. The first process to do so was");
    case 'Y':
      return line.starts_with("YOUR APPLICATION TERMINATED WITH THE EXIT STRING");
    case 'T':
      return line.starts_with("This typically refers to a problem with your application");
    default:
      return false;
  }
}

bool IsBrokenOff(std::string_view line) {
  constexpr std::string_view kNoticed = " noticed that process rank ";
  const size_t noticed = line.find(kNoticed);
  if (noticed == std::string_view::npos || !IsLauncherWord(line)) return false;
  // "… on node gpu.cluster.local exited on", "… with PID 0 on"
  return line.find(").", noticed) == std::string_view::npos;
}

bool IsRestartWord(std::string_view line) {
  static constexpr std::array<std::string_view, 3> kWords{"restart worker group", "estarting training",
                                                          "esuming training"};
  if (HoldsAny(line, kWords)) return true;
  constexpr std::string_view kCount = "estart_count=";
  const size_t count = line.find(kCount);
  if (count == std::string_view::npos || count + kCount.size() == line.size()) return false;
  const char first = line[count + kCount.size()];
  return first >= '1' && first <= '9';
}

std::vector<RankFailure> AttributeLauncherOutput(std::vector<RankFailure> failures) {
  const bool has_rank = std::ranges::any_of(failures, [](const RankFailure& f) { return f.mpi_rank.has_value(); });
  for (RankFailure& failure : failures) {
    if (!failure.is_launcher || !has_rank) continue;
    std::erase_if(failure.matches, [](const LineMatch& match) { return IsLauncherWord(match.line); });
  }
  RankFailure* const launcher = LauncherWithoutRank(failures);
  const RankFailure* const first = FirstMpiRank(failures);
  if (launcher == nullptr || first == nullptr) return failures;
  RankFailure& told = failures[static_cast<size_t>(first - failures.data())];
  std::ranges::move(launcher->matches, std::back_inserter(told.matches));
  told.last_error_line = launcher->last_error_line;  // its worker has nothing to say but that it waits
  launcher->matches.clear();
  return failures;
}

bool LauncherFollowed(std::span<const RankFailure> failures) { return std::ranges::any_of(failures, FailedByItself); }

}  // namespace aimaster
