#include "detect/line_scanner.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "detect/line_text.h"

namespace aimaster {
namespace {

constexpr size_t kRulesKept = kMatchesPerRankMax / 2;  // two lines each
constexpr size_t kVoicesMax = 256;                     // more labels than that are no labels
constexpr uint64_t kExceptionReachBytes = 16 << 10;    // an exception is old news when more was printed after it

}  // namespace

LineScanner::LineScanner(PatternMatcher& matcher, std::string file) : matcher_(matcher), file_(std::move(file)) {}

void LineScanner::Feed(std::string_view bytes, uint64_t offset) {
  splitter_.Feed(bytes, offset, [this](std::string_view line, uint64_t at) { OnLine(line, at); });
}

void LineScanner::Finish() {
  splitter_.Finish([this](std::string_view line, uint64_t at) { OnLine(line, at); });
}

void LineScanner::OnLine(std::string_view raw, uint64_t offset) {
  const auto [label, text] = SplitRankLabels(CleanLine(raw, buffer_));
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  if (std::all_of(text.begin(), text.end(), is_blank)) return;
  Voice& voice = VoiceOf(label);
  const std::string_view line = voice.traceback.WithoutLogPrefix(text);
  const LineKind kind = voice.traceback.Classify(line);
  const PatternMatcher::Found found = matcher_.Match(line);
  const std::optional<RuleIndex> rule = RuleOf(found, kind, voice);
  if (found.never_root) return;
  if (rule) KeepMatch(*rule, line, offset);
  KeepTelling(kind, line, offset, voice);
}

LineScanner::Voice& LineScanner::VoiceOf(std::string_view label) {
  if (label.empty()) return unlabelled_;
  const auto known = voices_.find(label);
  if (known != voices_.end()) return known->second;
  return voices_.size() < kVoicesMax ? voices_[std::string(label)] : unlabelled_;
}

// In a chain of exceptions the first one began it, but programs also look things up and fail on purpose (a KeyError,
// and then the real trouble). So a later exception counts only where its rule is stronger.
std::optional<RuleIndex> LineScanner::RuleOf(const PatternMatcher::Found& found, LineKind kind, Voice& voice) {
  switch (kind) {
    case LineKind::kOther:
      return found.line;
    case LineKind::kFrame:
      return found.frame;
    case LineKind::kHeader:
    case LineKind::kChainLink:
      return std::nullopt;
    case LineKind::kException:
      voice.chain_rule = found.line;
      return found.line;
    case LineKind::kChainedException:
      if (!found.line || (voice.chain_rule && *voice.chain_rule <= *found.line)) return std::nullopt;
      voice.chain_rule = found.line;
      return found.line;
    case LineKind::kIgnoredException:
      // The program went on; but where it speaks of a broken device, the device is broken.
      return found.line && matcher_.rules().rule(*found.line).node_suspect ? found.line : std::nullopt;
  }
  return std::nullopt;
}

void LineScanner::KeepMatch(RuleIndex rule, std::string_view line, uint64_t offset) {
  auto hit = hits_.find(rule);
  if (hit == hits_.end() && hits_.size() == kRulesKept) {
    const auto weakest = std::prev(hits_.end());
    if (weakest->first < rule) return;
    hits_.erase(weakest);
  }
  LineMatch match{matcher_.rules().rule(rule).code, OneLine(line, kErrorTextMaxBytes), file_, offset};
  if (hit == hits_.end()) {
    hits_.emplace(rule, Hits{std::move(match), std::nullopt});
  } else {
    hit->second.last = std::move(match);
  }
}

void LineScanner::KeepTelling(LineKind kind, std::string_view line, uint64_t offset, Voice& voice) {
  last_offset_ = offset;
  switch (kind) {
    case LineKind::kHeader:
    case LineKind::kFrame:
    case LineKind::kChainLink:
    case LineKind::kIgnoredException:
      return;
    case LineKind::kException:
    case LineKind::kChainedException:
      exception_.assign(line.substr(0, kErrorTextMaxBytes));
      exception_offset_ = offset;
      voice.exception_goes_on = line.ends_with(':');
      return;
    case LineKind::kOther:
      if (voice.exception_goes_on) exception_.append(" ").append(line.substr(0, kErrorTextMaxBytes));
      voice.exception_goes_on = false;
      last_line_.assign(line.substr(0, kErrorTextMaxBytes));
      return;
  }
}

std::vector<LineMatch> LineScanner::Matches() const {
  std::vector<LineMatch> matches;
  for (const auto& [rule, hits] : hits_) {
    matches.push_back(hits.first);
    if (hits.last) matches.push_back(*hits.last);
  }
  std::sort(matches.begin(), matches.end(), [](const LineMatch& a, const LineMatch& b) {
    return std::tie(a.offset, a.rule) < std::tie(b.offset, b.rule);
  });
  return matches;
}

std::string LineScanner::last_error_line() const {
  const bool recent = !exception_.empty() && last_offset_ - exception_offset_ <= kExceptionReachBytes;
  return OneLine(recent || last_line_.empty() ? exception_ : last_line_, kErrorTextMaxBytes);
}

std::vector<LineMatch> ScanText(PatternMatcher& matcher, std::string_view text, std::string name) {
  LineScanner scanner(matcher, std::move(name));
  scanner.Feed(text, 0);
  scanner.Finish();
  return scanner.Matches();
}

}  // namespace aimaster
