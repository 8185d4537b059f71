// LineSplitter: bytes that arrive in chunks as whole lines, each with its place in the file.
//
// A line ends at a newline, a carriage return (progress bars redraw themselves with it) or a NUL byte (what is left
// where old log bytes were freed in place). Only a line that is cut in two by a chunk's end is copied.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace aimaster {

inline constexpr size_t kLineMaxBytes = 16 << 10;  // of a longer line this much of its beginning is kept …
inline constexpr size_t kLineTailBytes = 2 << 10;  // … and this much of its end

inline bool IsLineEnd(char c) { return c == '\n' || c == '\r' || c == '\0'; }

// Whether one of these eight bytes is '\r' or below, as hardly any other is.
inline bool MayHoldLineEnd(const char* eight) {
  constexpr uint64_t kEach = 0x0101010101010101;
  uint64_t bytes;
  std::memcpy(&bytes, eight, sizeof bytes);
  return ((bytes - 0x0e * kEach) & ~bytes & (0x80 * kEach)) != 0;
}

// Of the line that the byte at `at` belongs to.
inline size_t StartOfLine(std::string_view text, size_t at) {
  while (at >= 8 && !MayHoldLineEnd(text.data() + at - 8)) at -= 8;
  while (at > 0 && !IsLineEnd(text[at - 1])) --at;
  return at;
}
inline size_t EndOfLine(std::string_view text, size_t at) {
  while (at + 8 <= text.size() && !MayHoldLineEnd(text.data() + at)) at += 8;
  while (at < text.size() && !IsLineEnd(text[at])) ++at;
  return at;
}

// The bytes of a line that count: all of it, or its beginning and its end.
template <typename OnPart>
void ForEachPart(std::string_view line, OnPart&& on_part) {
  on_part(line.substr(0, kLineMaxBytes));
  if (line.size() <= kLineMaxBytes) return;
  line.remove_prefix(kLineMaxBytes);
  on_part(line.substr(line.size() - std::min(line.size(), kLineTailBytes)));
}

class LineSplitter {
 public:
  // Whether the bytes at `offset` are those that come next.
  bool Continues(uint64_t offset) const { return offset == next_offset_; }
  uint64_t next_offset() const { return next_offset_; }
  // Whether a line has begun and not ended.
  bool is_in_line() const { return !pending_.empty(); }
  // The bytes up to here are whole lines that somebody else has seen to.
  void PassOver(uint64_t next_offset) { next_offset_ = next_offset; }

  // Calls on_line(line, offset of its first byte) for every line that ends in `bytes`; empty lines are left out. An
  // offset that does not continue the last chunk (a hole, or the file was truncated) ends the line before it.
  template <typename OnLine>
  void Feed(std::string_view bytes, uint64_t offset, OnLine&& on_line) {
    if (offset != next_offset_) Finish(on_line);
    next_offset_ = offset + bytes.size();
    while (!bytes.empty()) {
      const size_t newline = bytes.find('\n');
      const std::string_view segment = bytes.substr(0, newline);
      FeedSegment(segment, offset, on_line);
      if (newline == std::string_view::npos) return;
      Finish(on_line);
      bytes.remove_prefix(newline + 1);
      offset += newline + 1;
    }
  }

  // The output ends here: what came after the last newline is a line too.
  template <typename OnLine>
  void Finish(OnLine&& on_line) {
    if (pending_.empty()) return;
    const std::string_view line = pending_;
    on_line(line, pending_offset_);
    if (!tail_.empty()) on_line(Last(tail_), pending_offset_);
    pending_.clear();
    tail_.clear();
  }

 private:
  // A stretch without a newline; its last line stays pending.
  template <typename OnLine>
  void FeedSegment(std::string_view segment, uint64_t offset, OnLine&& on_line) {
    const bool plain = segment.find('\r') == std::string_view::npos && segment.find('\0') == std::string_view::npos;
    size_t start = 0;
    for (size_t at = 0; !plain && at < segment.size(); ++at) {
      if (segment[at] != '\r' && segment[at] != '\0') continue;
      Keep(segment.substr(start, at - start), offset + start);
      Finish(on_line);
      start = at + 1;
    }
    Keep(segment.substr(start), offset + start);
  }

  void Keep(std::string_view piece, uint64_t offset) {
    if (piece.empty()) return;
    if (pending_.empty()) pending_offset_ = offset;
    const size_t room = std::min(kLineMaxBytes - pending_.size(), piece.size());
    pending_.append(piece.substr(0, room));
    if (room < piece.size()) KeepTail(piece.substr(room));
  }

  void KeepTail(std::string_view piece) {
    tail_.append(Last(piece));
    if (tail_.size() > 2 * kLineTailBytes) tail_.erase(0, tail_.size() - kLineTailBytes);
  }

  static std::string_view Last(std::string_view text) {
    return text.substr(text.size() - std::min(text.size(), kLineTailBytes));
  }

  std::string pending_;  // at most kLineMaxBytes
  std::string tail_;     // of what did not fit there, at most 2 * kLineTailBytes
  uint64_t pending_offset_ = 0;
  uint64_t next_offset_ = 0;
};

}  // namespace aimaster
