// SuspectLines: of many lines of output, those that somebody should look at. A training prints gigabytes of which
// hardly a line says anything to us, so what is quick is to know which lines need no look.
//
// It may name a line too many, never one too few: whatever cleaning (line_text.h) makes of a line, and however many
// labels are taken off it, the words in it stay in it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "detect/pattern_matcher.h"

namespace aimaster {

struct LineRange {
  size_t begin = 0, end = 0;  // without what ends the line
  bool operator==(const LineRange&) const = default;
};

class SuspectLines {
 public:
  explicit SuspectLines(PatternMatcher& matcher) : matcher_(matcher) {}

  // The lines of `text`, in order; valid until the next call. `text` is shorter than 4 GiB. Nothing: look at all.
  std::optional<std::span<const LineRange>> In(std::string_view text);

 private:
  void AddLinesAt(std::string_view text);
  // Lines with colours and the like, in which words may be interrupted: their clean text is searched.
  void AddUncleanLines(std::string_view text);

  PatternMatcher& matcher_;
  std::vector<LineRange> lines_;
  std::vector<uint32_t> ends_;
  std::string cleaned_, buffer_;
  struct Cleaned {
    uint32_t end = 0;  // of its text in cleaned_
    LineRange line;
  };
  std::vector<Cleaned> unclean_;
};

}  // namespace aimaster
