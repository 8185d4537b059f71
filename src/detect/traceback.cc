#include "detect/traceback.h"

#include <algorithm>

#include "detect/line_text.h"

namespace aimaster {
namespace {

bool IsWordStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsWord(char c) { return IsWordStart(c) || (c >= '0' && c <= '9'); }

// "name" or "package.Name", alone or followed by a colon and a message.
bool LooksLikeException(std::string_view line) {
  const std::string_view name = line.substr(0, line.find(':'));
  if (name.empty() || name.size() > 200) return false;
  if (name.size() + 1 < line.size() && line[name.size() + 1] != ' ') return false;
  bool at_start = true;
  for (char c : name) {
    if (c == '.' && !at_start) {
      at_start = true;
    } else if (at_start ? IsWordStart(c) : IsWord(c)) {
      at_start = false;
    } else {
      return false;
    }
  }
  return !at_start;
}

// What an exception of Python is called, whoever made it: it comes with the package that it is of, or its own name
// begins with a capital. "INFO: …", "step: 3" and "Epoch: 3" are other people's words in between.
enum class Likeness { kNone, kBehindFrames, kCertain };
Likeness ExceptionIn(std::string_view line) {
  if (!LooksLikeException(line)) return Likeness::kNone;
  const std::string_view full = line.substr(0, line.find(':'));
  const std::string_view name = full.substr(full.rfind('.') + 1);  // npos + 1 is 0
  const bool is_dotted = name.size() < full.size();
  const bool is_capital = name[0] >= 'A' && name[0] <= 'Z';
  if (name.ends_with("Error") || name.ends_with("Exception") ||
      (is_dotted && (is_capital || name.ends_with("error")))) {
    return Likeness::kCertain;
  }
  const bool is_shouted = std::none_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  const bool is_measured = line.size() > full.size() + 2 && IsDigit(line[full.size() + 2]);
  return (is_dotted || (is_capital && !is_shouted)) && !is_measured ? Likeness::kBehindFrames : Likeness::kNone;
}

constexpr std::string_view kHeader = "Traceback (most recent call last):";
constexpr size_t kLogPrefixMax = 160;

// The library rich draws a box around a traceback, with "Traceback (most recent call last)" in its upper edge.
bool IsBox(std::string_view line) { return line.starts_with("│") || line.starts_with("╭") || line.starts_with("╰"); }
bool IsBoxHeader(std::string_view line) {
  return line.starts_with("╭") && line.find("Traceback (most recent call last)") != std::string_view::npos;
}

// The same but for digits: times and process ids go on.
bool HasShape(std::string_view text, std::string_view shape) {
  if (text.size() < shape.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (IsDigit(shape[i]) ? !IsDigit(text[i]) : text[i] != shape[i]) return false;
  }
  return true;
}

}  // namespace

bool IsCrashDumpHeading(std::string_view line) {
  if (line.starts_with("Extension modules: ")) return true;
  const bool is_thread = line.starts_with("Current thread 0x") || line.starts_with("Thread 0x");
  return is_thread && line.ends_with("(most recent call first):");
}

std::string_view Traceback::WithoutLogPrefix(std::string_view line) const {
  const bool prefixed = !log_prefix_.empty() && HasShape(line, log_prefix_);
  return prefixed ? line.substr(log_prefix_.size()) : line;
}

LineKind Traceback::OnHeader(std::string_view line, size_t header) {
  open_ = true;
  in_frame_ = false;
  chained_ = link_seen_;
  link_seen_ = false;
  ignored_ = ignore_next_ || (chained_ && ignored_);
  ignore_next_ = false;
  // After the cleaning of line this is a prefix where there was none, or the same one again.
  if (header > 0 && header <= kLogPrefixMax) log_prefix_ = line.substr(0, header);
  return LineKind::kHeader;
}

LineKind Traceback::Classify(std::string_view line) {
  if (const size_t header = line.find(kHeader); header != std::string_view::npos) return OnHeader(line, header);
  if (IsBoxHeader(line)) return OnHeader(line, 0);
  if (open_ && IsBox(line)) {
    in_frame_ = true;
    return LineKind::kFrame;
  }
  const bool was_ignored = ignore_next_, was_in_frame = in_frame_;
  ignore_next_ = line.starts_with("Exception ignored ") || line.starts_with("--- Logging error ---");
  const bool indented = line.starts_with(' ') || line.starts_with('\t');
  if (indented) {
    const size_t text = line.find_first_not_of(" \t");
    const bool file = text != std::string_view::npos && line.substr(text).starts_with("File \"");
    if (open_ || file || in_frame_) {
      in_frame_ = true;
      return LineKind::kFrame;
    }
    return LineKind::kOther;
  }
  in_frame_ = false;
  if (line.starts_with("During handling of the above exception") ||
      line.starts_with("The above exception was the direct cause")) {
    link_seen_ = true;
    return LineKind::kChainLink;
  }
  const Likeness exception = ExceptionIn(line);
  // Some names may be anybody's word, unless they follow the frames.
  if (open_ && (exception == Likeness::kCertain || (exception == Likeness::kBehindFrames && was_in_frame))) {
    return OnException();
  }
  if (exception != Likeness::kCertain) return LineKind::kOther;
  link_seen_ = false;  // it was this one's, and its traceback is not shown
  return was_ignored ? LineKind::kIgnoredException : LineKind::kOther;
}

LineKind Traceback::OnException() {
  open_ = false;
  if (ignored_) return LineKind::kIgnoredException;
  return chained_ ? LineKind::kChainedException : LineKind::kException;
}

}  // namespace aimaster
