#include "c4d/slow_replay.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "core/count.h"

namespace aimaster::c4d {
namespace {

constexpr Duration kReplayWindow = std::chrono::seconds(5);
constexpr uint32_t kOperationsWanted = 16;  // of the middle rank in a window; half of that is enough to be judged
constexpr Duration kBetweenOperationsMax = std::chrono::hours(24);
constexpr uint32_t kReplayWindowsMin = 5;  // two to learn what is usual, and three that are slow
constexpr uint64_t kEmptyWindowsMax = 60;  // a pause beyond that changes nothing more

auto PlaceOf(const LoggedOperation& one) { return std::tuple(one.operation.communicator, one.operation.sequence); }

// Those of one collective get one time, and come together; those that nobody can judge become waits.
void Settle(std::vector<LoggedOperation>& operations) {
  std::ranges::sort(operations, {}, [](const LoggedOperation& one) {
    const FinishedOperation& operation = one.operation;
    return std::tuple(IsPointToPoint(operation.function), operation.communicator, operation.sequence, operation.rank,
                      operation.duration, one.written);
  });
  for (auto begin = operations.begin(); begin != operations.end();) {
    if (IsPointToPoint(begin->operation.function)) break;
    const auto end = std::find_if(begin, operations.end(), [&](const LoggedOperation& one) {
      return IsPointToPoint(one.operation.function) || PlaceOf(one) != PlaceOf(*begin);
    });
    bool is_whole = static_cast<size_t>(end - begin) == begin->operation.members;
    std::vector<Duration> times;
    for (auto one = begin; one != end; ++one) {
      times.push_back(one->written);
      if (one != begin && one->operation.rank == (one - 1)->operation.rank) is_whole = false;
    }
    std::ranges::nth_element(times, times.begin() + static_cast<ptrdiff_t>(times.size() / 2));
    for (auto one = begin; one != end; ++one) {
      one->written = times[times.size() / 2];
      if (!is_whole) one->operation.function = Function::kReceive;
    }
    begin = end;
  }
  std::ranges::sort(operations, {}, [](const LoggedOperation& one) {
    const FinishedOperation& operation = one.operation;
    return std::tuple(one.written, operation.communicator, operation.sequence, operation.rank, operation.duration);
  });
}

// Of the rank that has as many collectives as the middle one.
uint64_t OperationsOfMiddle(const std::vector<LoggedOperation>& operations) {
  std::map<Rank, uint64_t> of;
  for (const LoggedOperation& one : operations) {
    if (!IsPointToPoint(one.operation.function)) ++of[one.operation.rank];
  }
  if (of.empty()) return 0;
  std::vector<uint64_t> counts;
  for (const auto& [_, count] : of) counts.push_back(count);
  const auto middle = counts.begin() + static_cast<ptrdiff_t>(counts.size() / 2);
  std::ranges::nth_element(counts, middle);
  return *middle;
}

// The same that is found in many windows.
class Findings {
 public:
  void Add(std::vector<Verdict> verdicts, Duration window_end) {
    for (Verdict& verdict : verdicts) {
      Finding& finding = found_[{verdict.kind, verdict.ranks, verdict.is_group}];
      ++finding.windows;
      finding.last = window_end;
      finding.verdict = std::move(verdict);
    }
  }

  std::vector<Verdict> Take(Duration window, uint32_t windows) {
    std::vector<Finding> all;
    for (auto& [_, finding] : found_) all.push_back(std::move(finding));
    std::ranges::sort(all, {}, [](const Finding& finding) {
      return std::tuple(-int64_t{finding.windows}, finding.verdict.kind, finding.verdict.ranks,
                        finding.verdict.is_group);
    });
    std::vector<Verdict> verdicts;
    for (Finding& finding : all) {
      Verdict& verdict = verdicts.emplace_back(std::move(finding.verdict));
      verdict.since = window * finding.windows;
      verdict.evidence.push_back("It was found at the end of " + std::to_string(finding.windows) + " of " +
                                 Count(windows, "window") + " of " + FormatDuration(window) + ", the last until " +
                                 FormatRfc3339(Wall{finding.last}) + ".");
    }
    return verdicts;
  }

 private:
  struct Finding {
    Verdict verdict;
    uint32_t windows = 0;
    Duration last{};
  };
  std::map<std::tuple<VerdictKind, std::vector<Rank>, bool>, Finding> found_;
};

}  // namespace

SlowReplay ReplaySlowness(std::vector<LoggedOperation> operations, std::span<const Communicator> communicators) {
  SlowReplay replay{.verdicts = {}, .window = kReplayWindow};
  Settle(operations);
  const uint64_t operations_of_middle = OperationsOfMiddle(operations);
  if (operations_of_middle == 0) return replay;
  const Duration span = operations.back().written - operations.front().written;
  const Duration between = std::min(span / static_cast<int64_t>(operations_of_middle), kBetweenOperationsMax);
  replay.window = std::max(kReplayWindow, between * kOperationsWanted);

  SlowWatch watch;
  Findings findings;
  Duration begin = operations.front().written;
  Duration counted = begin;  // until then all is in a window that was closed
  bool is_empty = true;
  const auto close = [&] {
    const Duration end = begin + replay.window;
    std::vector<Verdict> verdicts = watch.CloseWindow(is_empty ? replay.window : end - counted, communicators);
    if (!is_empty) {
      findings.Add(std::move(verdicts), end);
      ++replay.windows;
      counted = end;
    }
    is_empty = true;
    begin = end;
  };
  for (const LoggedOperation& one : operations) {
    const auto ahead = static_cast<uint64_t>((one.written - begin) / replay.window);
    for (uint64_t i = 0; i < std::min(ahead, kEmptyWindowsMax); ++i) close();
    if (ahead > kEmptyWindowsMax) begin += replay.window * static_cast<int64_t>(ahead - kEmptyWindowsMax);
    watch.Add(one.operation);
    is_empty = false;
  }
  // The last one is not over, and counts for nothing.
  replay.is_enough = replay.windows >= kReplayWindowsMin;
  replay.verdicts = findings.Take(replay.window, replay.windows);
  return replay;
}

}  // namespace aimaster::c4d
