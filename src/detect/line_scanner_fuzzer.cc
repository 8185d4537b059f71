// Whatever a rank prints, in whatever chunks: nothing breaks, and what is kept is bounded, valid UTF-8, one line.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "detect/collective_progress.h"
#include "detect/line_scanner.h"
#include "detect/line_text.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

void RequireShowable(const std::string& text) {
  std::string buffer;
  Require(text.size() <= aimaster::kErrorTextMaxBytes);
  Require(aimaster::CleanLine(text, buffer) == text);
  Require(text.find('\t') == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static aimaster::PatternMatcher matcher;
  if (size == 0) return 0;
  // The first byte says how the rest is cut into chunks.
  const size_t chunk = 1 + data[0] % 64 * 16;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  aimaster::LineScanner whole(matcher, "rank0.err"), cut(matcher, "rank0.err");
  whole.Feed(text, 0);
  whole.Finish();
  for (size_t at = 0; at < text.size(); at += chunk) cut.Feed(text.substr(at, chunk), at);
  cut.Finish();
  Require(whole.Matches() == cut.Matches());
  Require(whole.last_error_line() == cut.last_error_line());
  Require(whole.Matches().size() <= aimaster::kMatchesPerRankMax);
  for (const aimaster::LineMatch& match : whole.Matches()) {
    RequireShowable(match.line);
    Require(match.offset < text.size());
  }
  RequireShowable(whole.last_error_line());
  // What watchdogs say is compared as if it were said by different ranks.
  std::vector<aimaster::CollectiveReport> reports;
  uint32_t rank = 0;
  for (const aimaster::LineMatch& match : whole.Matches()) {
    for (auto& report : aimaster::ReadCollectiveReports(aimaster::Rank{rank}, {&match, 1})) reports.push_back(report);
    ++rank;
  }
  if (const auto odd = aimaster::FindOddRanks(reports, {}, rank))
    Require(odd->ranks.size() <= rank && !odd->words.empty());
  return 0;
}
