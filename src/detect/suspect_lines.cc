#include "detect/suspect_lines.h"

#include <algorithm>

#include "detect/line_splitter.h"
#include "detect/line_text.h"

namespace aimaster {

std::optional<std::span<const LineRange>> SuspectLines::In(std::string_view text) {
  lines_.clear();
  ends_.clear();
  if (!matcher_.FindWords(text, ends_)) return std::nullopt;
  AddLinesAt(text);
  AddUncleanLines(text);
  std::ranges::sort(lines_, {}, &LineRange::begin);
  lines_.erase(std::unique(lines_.begin(), lines_.end()), lines_.end());
  return lines_;
}

void SuspectLines::AddLinesAt(std::string_view text) {
  std::ranges::sort(ends_);
  for (const uint32_t end : ends_) {
    const size_t last = end - 1;
    if (!lines_.empty() && last < lines_.back().end) continue;
    lines_.push_back({StartOfLine(text, last), EndOfLine(text, last)});
  }
}

void SuspectLines::AddUncleanLines(std::string_view text) {
  cleaned_.clear();
  unclean_.clear();
  for (size_t at = FindControl(text, 0); at < text.size(); at = FindControl(text, at)) {
    const LineRange line{StartOfLine(text, at), EndOfLine(text, at)};
    ForEachPart(text.substr(line.begin, line.end - line.begin), [&](std::string_view part) {
      cleaned_ += CleanLine(part, buffer_);
      cleaned_ += '\n';
      unclean_.push_back({static_cast<uint32_t>(cleaned_.size()), line});
    });
    at = line.end;
  }
  if (unclean_.empty()) return;
  ends_.clear();
  matcher_.FindWords(cleaned_, ends_);
  for (const uint32_t end : ends_) {
    lines_.push_back(std::ranges::upper_bound(unclean_, end - 1, {}, &Cleaned::end)->line);
  }
}

}  // namespace aimaster
