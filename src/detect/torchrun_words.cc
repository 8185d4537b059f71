#include "detect/torchrun_words.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "detect/line_text.h"

namespace aimaster {
namespace {

constexpr int kSigint = 2, kSigabrt = 6, kSigterm = 15;  // Linux

constexpr size_t kEntriesMax = 4096;
constexpr std::string_view kFailures = "Failures:";
constexpr std::string_view kRootCause = "Root Cause (first observed failure):";

struct Entry {
  TorchrunFailure failure;
  std::string time;       // sorts as it is written
  bool is_named = false;  // as the root cause
};

// How much more than an exception in Python it was: that ends with 1, and may be about another's death. What torchrun
// stopped itself comes last.
enum class Weight { kOwnEnd, kAbort, kException, kStopped };

Weight WeightOf(int exit_code) {
  switch (exit_code) {
    case -kSigterm:
    case -kSigint:
      return Weight::kStopped;
    case 1:
      return Weight::kException;
    case -kSigabrt:  // also how libraries end when a peer is gone
      return Weight::kAbort;
    default:
      return Weight::kOwnEnd;
  }
}

// "  rank      : 1 (local_rank: 1)" → "1 (local_rank: 1)"
std::optional<std::string_view> ValueOf(std::string_view line, std::string_view name) {
  const size_t start = line.find_first_not_of(' ');
  if (start == std::string_view::npos || start == 0 || !line.substr(start).starts_with(name)) return std::nullopt;
  line.remove_prefix(start + name.size());
  const size_t colon = line.find_first_not_of(' ');
  if (colon == std::string_view::npos || line[colon] != ':') return std::nullopt;
  line.remove_prefix(colon + 1);
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return line;
}

template <typename Number>
std::optional<Number> NumberAt(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} ? std::optional(number) : std::nullopt;
}

// "-9 (pid: 23449)"
bool ReadExit(std::string_view value, TorchrunFailure& failure) {
  constexpr std::string_view kPid = "(pid: ";
  const size_t pid_start = value.find(kPid);
  const auto code = NumberAt<int>(value);
  if (!code || pid_start == std::string_view::npos) return false;
  const auto pid = NumberAt<uint32_t>(value.substr(pid_start + kPid.size()));
  if (!pid || *code == 0 || *code < -64 || *code > 255) return false;
  failure.exit_code = *code;
  failure.torchrun.pid = *pid;
  return true;
}

// What closes a table: "======".
bool IsBorder(std::string_view line) {
  return line.size() >= 3 && line.find_first_not_of('=') == std::string_view::npos;
}

// The entries of the table that the text ends with. One without an exit code, of an older or newer format, is left out.
std::vector<Entry> ReadTable(std::string_view text) {
  std::vector<Entry> entries;
  std::string buffer;
  Entry entry;
  bool in_table = false, is_named = false, is_closed = false;
  while (!text.empty()) {
    const std::string_view raw = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(raw.size() + 1, text.size()));
    const std::string_view line = StripRankPrefixes(CleanLine(raw, buffer));
    if (is_closed && !line.empty()) {
      entries.clear();
      in_table = is_named = is_closed = false;
    }
    if (line == kFailures) {
      entries.clear();
      in_table = true;
      is_named = false;
    } else if (line == kRootCause) {
      in_table = is_named = true;
    } else if (is_named && IsBorder(line)) {
      is_closed = true;
    }
    if (!in_table || entries.size() == kEntriesMax) continue;
    if (const auto time = ValueOf(line, "time")) {
      entry = {.failure = {}, .time = std::string(time->substr(0, 19)), .is_named = is_named};
    } else if (const auto rank = ValueOf(line, "rank")) {
      entry.failure.torchrun.rank = NumberAt<uint32_t>(*rank);
    } else if (const auto exit = ValueOf(line, "exitcode"); exit && ReadExit(*exit, entry.failure)) {
      entries.push_back(entry);
    }
  }
  return entries;
}

bool ComesBefore(const Entry& a, const Entry& b) {
  const Weight weight_a = WeightOf(a.failure.exit_code), weight_b = WeightOf(b.failure.exit_code);
  if (weight_a != weight_b) return weight_a < weight_b;
  if (a.time != b.time) return a.time < b.time;
  if (a.is_named != b.is_named) return a.is_named;
  return a.failure.torchrun.rank < b.failure.torchrun.rank;
}

}  // namespace

// "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 1 (pid: 4) of binary: …"
// "  exitcode  : -9 (pid: 4)"
// "  traceback : Signal 9 (SIGKILL) received by PID 4"
bool IsTorchrunWord(std::string_view line) {
  const std::string field = " " + std::string(line);  // who quotes a line leaves the blanks before it out
  return (line.find("failed (exitcode: ") != std::string_view::npos &&
          line.find(" local_rank: ") != std::string_view::npos) ||
         ValueOf(field, "exitcode") || ValueOf(field, "traceback");
}

std::optional<TorchrunFailure> FindTorchrunFailure(std::string_view text) {
  if (text.find(kRootCause) == std::string_view::npos) return std::nullopt;
  const std::vector<Entry> entries = ReadTable(text);
  if (entries.empty()) return std::nullopt;
  const Entry& first = *std::ranges::min_element(entries, ComesBefore);
  const bool is_exception = WeightOf(first.failure.exit_code) == Weight::kException;
  const auto exceptions = std::ranges::count_if(
      entries, [](const Entry& entry) { return WeightOf(entry.failure.exit_code) == Weight::kException; });
  if (is_exception && exceptions > 1) return TorchrunFailure{.torchrun = {}, .exit_code = 1};
  return first.failure;
}

}  // namespace aimaster
