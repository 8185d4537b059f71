#include "detect/line_scanner.h"

#include <algorithm>
#include <array>
#include <span>
#include <tuple>
#include <utility>

#include "detect/launcher_words.h"
#include "detect/line_text.h"
#include "detect/outlived.h"
#include "detect/taken_back.h"

namespace aimaster {
namespace {

constexpr size_t kRulesKept = kMatchesPerRankMax / 2 - 1;  // two lines each; and one that says that the job went on
constexpr int kOtherwiseMax = 8;                           // steps told in another way, until that way counts
constexpr uint64_t kProgressReachBytes = 4 << 20;          // who tells no step so far behind an event tells none
constexpr size_t kVoicesMax = 256;                         // more labels than that are no labels
constexpr size_t kPageBytes = 128 << 10;             // read at one glance; it should stay in the processor's cache
constexpr size_t kPageWorthBytes = 1 << 10;          // less than that is read line by line at once
constexpr uint64_t kExceptionReachBytes = 16 << 10;  // an exception is old news when more was printed after it

bool IsBlank(std::string_view text) { return text.find_first_not_of(" \t") == std::string_view::npos; }

}  // namespace

LineScanner::LineScanner(PatternMatcher& matcher, std::string file, Reading reading)
    : matcher_(matcher), file_(std::move(file)), reading_(reading) {}

void LineScanner::Voice::GiveUp() {
  traceback.GiveUp();
  exception_goes_on = false;
  broken_off.clear();
}

// ---- which lines ----

void LineScanner::Feed(std::string_view bytes, uint64_t offset) {
  const auto on_line = [this](std::string_view line, uint64_t at) { OnLine(line, at); };
  if (!splitter_.Continues(offset)) Finish();
  if (offset < splitter_.next_offset()) OnTruncated();
  // The rest of the line that the last bytes ended in; then whole lines; then the beginning of one.
  const size_t first = splitter_.is_in_line() ? std::min(EndOfLine(bytes, 0) + 1, bytes.size()) : 0;
  splitter_.Feed(bytes.substr(0, first), offset, on_line);
  bytes.remove_prefix(first);
  offset += first;
  const size_t whole = StartOfLine(bytes, bytes.size());
  if (whole > 0) {
    ReadLines(bytes.substr(0, whole), offset);
    splitter_.PassOver(offset + whole);
  }
  splitter_.Feed(bytes.substr(whole), offset + whole, on_line);
}

void LineScanner::Finish() {
  splitter_.Finish([this](std::string_view line, uint64_t at) { OnLine(line, at); });
}

// What was said shortly before still counts, as if it were the first that the file says.
void LineScanner::OnTruncated() {
  const uint64_t end = splitter_.next_offset();
  Forget(end - std::min(end, kOldNewsBytes));
  for (auto& [rule, hits] : hits_) {
    hits.first.offset = 0;
    if (hits.last) hits.last->offset = 0;
  }
  went_on_.reset();
  counted_from_.reset();
  Watch() = ProgressWatch{.event = 0, .until = hits_.empty() ? 0 : kProgressReachBytes};
  if (!HasRecentException()) exception_.clear();
  exception_offset_ = last_offset_ = last_line_offset_ = 0;
  unlabelled_.GiveUp();
  for (auto& [label, voice] : voices_) voice.GiveUp();
  attentive_voices_ = 0;
  attentive_until_ = 0;
}

void LineScanner::ReadLines(std::string_view text, uint64_t offset) {
  SuspectLines suspect_lines(matcher_);
  size_t at = 0;  // all before was looked at, or passed over
  const auto look = [&](const LineRange& line) {
    if (line.begin > at) PassOver(text.substr(at, line.begin - at), offset + at);
    LookAt(text.substr(line.begin, line.end - line.begin), offset + line.begin);
    at = std::min(line.end + 1, text.size());
  };
  for (size_t page = 0, next_page = 0; page < text.size(); page = next_page) {
    next_page = std::min(EndOfLine(text, std::min(page + kPageBytes, text.size())) + 1, text.size());
    const bool is_page = reading_ == Reading::kSuspectLines && next_page - page >= kPageWorthBytes;
    const auto suspects =
        is_page ? suspect_lines.In(text.substr(page, next_page - page)) : std::optional<std::span<const LineRange>>();
    auto suspect = suspects ? suspects->begin() : std::span<const LineRange>::iterator();
    while (at < next_page) {
      const bool is_every_line = !suspects || IsAttentive(offset + at);
      if (is_every_line) {
        look({at, EndOfLine(text, at)});
        continue;
      }
      while (suspect != suspects->end() && page + suspect->begin < at) ++suspect;
      if (suspect == suspects->end()) break;
      look({page + suspect->begin, page + suspect->end});
    }
  }
  PassOver(text.substr(at), offset + at);
  KeepLastPassedOver();
}

void LineScanner::LookAt(std::string_view raw, uint64_t offset) {
  if (!raw.empty()) ForEachPart(raw, [&](std::string_view part) { OnLine(part, offset); });
}

void LineScanner::PassOver(std::string_view text, uint64_t offset) {
  HeedProgressIn(text, offset);
  if (!passed_over_.empty() && passed_over_.back().offset < last_line_offset_) passed_over_.clear();
  if (!text.empty()) passed_over_.push_back({text, offset});
}

// Of lines that no rule knows and that change nothing, the last one that tells something is kept, unless a later one
// was.
void LineScanner::KeepLastPassedOver() {
  for (; !passed_over_.empty(); passed_over_.pop_back()) {
    const auto& [text, offset] = passed_over_.back();
    if (offset < last_line_offset_ || KeepLastTelling(text, offset)) break;
  }
  passed_over_.clear();
}

bool LineScanner::KeepLastTelling(std::string_view text, uint64_t offset) {
  while (!text.empty()) {
    if (IsLineEnd(text.back())) {
      text.remove_suffix(1);
      continue;
    }
    const size_t start = StartOfLine(text, text.size());
    const std::string_view line = text.substr(start);
    std::array<std::string_view, 2> parts;
    size_t count = 0;
    ForEachPart(line, [&](std::string_view part) { parts[count++] = part; });
    while (count > 0) {
      if (KeepIfTelling(parts[--count], offset + start)) return true;
    }
    text = text.substr(0, start);
  }
  return false;
}

bool LineScanner::KeepIfTelling(std::string_view raw, uint64_t offset) {
  const auto [label, text] = SplitRankLabels(CleanLine(raw, buffer_));
  if (IsBlank(text)) return false;
  const std::string_view line = VoiceOf(label).traceback.WithoutLogPrefix(text);
  if (matcher_.Match(line).never_root || IsLauncherWord(line) || IsCrashDumpHeading(line)) return false;
  last_offset_ = std::max(last_offset_, offset);
  last_line_offset_ = offset;
  last_line_.assign(line.substr(0, kErrorTextMaxBytes));
  return true;
}

// ---- one line ----

void LineScanner::OnLine(std::string_view raw, uint64_t offset) {
  const auto [label, text] = SplitRankLabels(CleanLine(raw, buffer_));
  if (IsBlank(text)) return;
  Voice& voice = VoiceOf(label);
  const bool was_attentive = voice.IsAttentive();
  if (was_attentive && offset > voice.heeded_at + kTracebackReachBytes) voice.GiveUp();
  const bool went_on = voice.IsAttentive();
  const std::string_view line = voice.traceback.WithoutLogPrefix(text);
  const LineKind kind = voice.traceback.Classify(line);
  if (kind != LineKind::kOther || !OnBrokenOff(line, offset, voice)) {
    PatternMatcher::Found found = matcher_.Match(line);
    if (kind == LineKind::kOther) found.line = StandingRule(matcher_, line, found);
    const std::optional<RuleIndex> rule = RuleOf(found, kind, voice);
    if (!found.never_root) {
      if (rule) KeepMatch(*rule, line, offset);
      KeepTelling(kind, line, offset, voice);
    }
    if (kind == LineKind::kOther && !rule) HeedProgress(line, offset);
  }
  if (kind != LineKind::kOther || !went_on) voice.heeded_at = offset;
  KeepVoice(label, voice, was_attentive);
}

// The sentence as a whole is one line, where it began.
bool LineScanner::OnBrokenOff(std::string_view line, uint64_t offset, Voice& voice) {
  if (!voice.broken_off.empty()) {
    const std::string sentence = std::exchange(voice.broken_off, {}) + " " + std::string(line);
    const PatternMatcher::Found found = matcher_.Match(sentence);
    if (!found.line && !found.never_root) return false;
    if (found.line && !found.never_root) KeepMatch(*found.line, sentence, voice.broken_off_at);
    return true;
  }
  if (!IsBrokenOff(line)) return false;
  voice.broken_off = line.substr(0, kErrorTextMaxBytes);
  voice.broken_off_at = offset;
  return true;
}

// ---- signs that the job goes on ----

void LineScanner::SayItWentOn(std::string_view line, uint64_t offset) {
  went_on_ = LineMatch{std::string(kWentOn), OneLine(line, kErrorTextMaxBytes), file_, offset};
}

void LineScanner::HeedProgress(std::string_view line, uint64_t offset) {
  if (IsRestartWord(line)) {
    SayItWentOn(line, offset);
    counted_from_.reset();
  } else {
    HeedStep(line, offset);
  }
}

void LineScanner::HeedStep(std::string_view line, uint64_t offset) {
  if (offset > Watch().until) return;
  std::optional<StepWord> step = StepIn(line);
  if (!step) return;
  if (counted_from_offset_ < Watch().event) counted_from_.reset();  // what was before an event shows nothing of it
  // Of two that count in turns (training and evaluation, say) the first one is followed as long as it goes on.
  const bool is_other = counted_from_ && counted_from_->way != step->way;
  if (is_other && ++counted_otherwise_ < kOtherwiseMax) return;
  counted_otherwise_ = 0;
  const bool begins = !counted_from_ || is_other || step->number < counted_from_->number;
  if (!begins && step->number - counted_from_->number < kStepsOutlived) return;
  if (!begins) {
    SayItWentOn(line, counted_from_offset_);
    if (counted_from_offset_ > Watch().event) Watch().until = 0;
  }
  counted_from_ = std::move(step);
  counted_from_offset_ = offset;
}

// Lines that no word stands in, so that nothing in them says that something begins anew.
void LineScanner::HeedProgressIn(std::string_view text, uint64_t offset) {
  for (size_t begin = 0; begin < text.size() && offset + begin <= Watch().until;) {
    const size_t end = EndOfLine(text, begin);
    ForEachPart(text.substr(begin, end - begin), [&](std::string_view part) {
      if (!MayTellStep(part)) return;
      const auto [label, line] = SplitRankLabels(CleanLine(part, buffer_));
      HeedStep(VoiceOf(label).traceback.WithoutLogPrefix(line), offset + begin);
    });
    begin = end + 1;
  }
}

// A voice is only known while it remembers something: labels that never hold a traceback may be as many as they like.
LineScanner::Voice& LineScanner::VoiceOf(std::string_view label) {
  if (label.empty()) return unlabelled_;
  const auto known = voices_.find(label);
  if (known != voices_.end()) return known->second;
  if (voices_.size() >= kVoicesMax) return unlabelled_;
  return new_voice_ = {};
}

void LineScanner::KeepVoice(std::string_view label, Voice& voice, bool was_attentive) {
  attentive_voices_ += static_cast<int>(voice.IsAttentive()) - static_cast<int>(was_attentive);
  if (voice.IsAttentive()) attentive_until_ = std::max(attentive_until_, voice.heeded_at + kTracebackReachBytes);
  if (&voice == &new_voice_ && voice.HasMemory()) voices_.emplace(label, voice);
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
      voice.chain_rule = UncaughtException(found);
      return voice.chain_rule;
    case LineKind::kChainedException: {
      const std::optional<RuleIndex> rule = UncaughtException(found);
      if (!rule || (voice.chain_rule && *voice.chain_rule <= *rule)) return std::nullopt;
      voice.chain_rule = rule;
      return rule;
    }
    case LineKind::kIgnoredException:
      // The program went on; but where it speaks of a broken device, the device is broken.
      return found.line && matcher_.rules().rule(*found.line).node_suspect ? found.line : std::nullopt;
  }
  return std::nullopt;
}

// What a class is called by its author tells nothing: where a traceback ends in it, it was raised and not caught.
std::optional<RuleIndex> LineScanner::UncaughtException(const PatternMatcher::Found& found) const {
  return found.line ? found.line : matcher_.rules().Find(kUserExceptionCode);
}

void LineScanner::KeepMatch(RuleIndex rule, std::string_view line, uint64_t offset) {
  Watch() = ProgressWatch{.event = offset, .until = offset + kProgressReachBytes};
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
  if (kind == LineKind::kOther && (IsLauncherWord(line) || IsCrashDumpHeading(line))) {
    voice.exception_goes_on = false;
    return;
  }
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
      last_line_offset_ = offset;
      return;
  }
}

void LineScanner::Forget(uint64_t before) {
  for (auto entry = hits_.begin(); entry != hits_.end();) {
    Hits& hits = entry->second;
    const bool lasts = hits.last && hits.last->offset >= before;
    if (hits.first.offset < before && lasts) hits.first = *std::exchange(hits.last, std::nullopt);
    entry = hits.first.offset < before ? hits_.erase(entry) : std::next(entry);
  }
}

std::vector<LineMatch> LineScanner::Matches() const {
  std::vector<LineMatch> matches;
  for (const auto& [rule, hits] : hits_) {
    matches.push_back(hits.first);
    if (hits.last) matches.push_back(*hits.last);
  }
  const auto is_before = [this](const LineMatch& match) { return match.offset < went_on_->offset; };
  if (went_on_ && std::ranges::any_of(matches, is_before)) matches.push_back(*went_on_);
  std::sort(matches.begin(), matches.end(), [](const LineMatch& a, const LineMatch& b) {
    return std::tie(a.offset, a.rule) < std::tie(b.offset, b.rule);
  });
  return matches;
}

bool LineScanner::HasRecentException() const {
  return !exception_.empty() && last_offset_ - exception_offset_ <= kExceptionReachBytes;
}

std::string LineScanner::last_error_line() const {
  return OneLine(HasRecentException() || last_line_.empty() ? exception_ : last_line_, kErrorTextMaxBytes);
}

std::vector<LineMatch> ScanText(PatternMatcher& matcher, std::string_view text, std::string name) {
  LineScanner scanner(matcher, std::move(name));
  scanner.Feed(text, 0);
  scanner.Finish();
  return scanner.Matches();
}

}  // namespace aimaster
