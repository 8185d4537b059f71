#include "detect/interval_advice.h"

#include <algorithm>
#include <charconv>

namespace aimaster {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::string_view kWords = "ollective operation timeout", kTimeout = "Timeout(ms)=";
constexpr milliseconds kTimeoutMax = 1'000'000'000s;  // as of every time that a person may set

}  // namespace

std::optional<milliseconds> WatchdogTimeout(std::string_view line) {
  const size_t words = line.find(kWords);
  if (words == std::string_view::npos) return std::nullopt;
  const size_t at = line.find(kTimeout, words);
  if (at == std::string_view::npos) return std::nullopt;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(line.data() + at + kTimeout.size(), line.data() + line.size(), number);
  if (error != std::errc() || number <= 0 || number > kTimeoutMax.count()) return std::nullopt;
  return milliseconds(number);
}

std::optional<seconds> IntervalBefore(milliseconds timeout) {
  const auto interval = std::chrono::duration_cast<seconds>(timeout - std::max<milliseconds>(150s, timeout / 6));
  return interval >= 1s ? std::optional(interval) : std::nullopt;
}

std::optional<seconds> AdviseInterval(std::span<const RankFailure> failures,
                                      const FaultToleranceParameters& parameters) {
  if (parameters.execution_mode == ExecutionMode::kAsync) return std::nullopt;
  std::optional<milliseconds> timeout;
  for (const RankFailure& failure : failures) {
    for (const LineMatch& match : failure.matches) {
      const std::optional<milliseconds> told = WatchdogTimeout(match.line);
      if (told && (!timeout || *told < *timeout)) timeout = told;
    }
  }
  const std::optional<seconds> interval = timeout ? IntervalBefore(*timeout) : std::nullopt;
  const bool is_early = parameters.enable_job_hang_detection && interval && parameters.job_hang_interval <= *interval;
  return is_early ? std::nullopt : interval;
}

}  // namespace aimaster
