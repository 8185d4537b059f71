#include "agent/log_scan.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "agent/limits.h"

namespace aimaster::agent {

bool LogScan::ReadOn(LogFile& file, uint64_t& budget, Monotonic now) {
  const uint64_t size = file.size();
  const uint64_t behind_max = has_begun_ ? kScanBehindMax : kScanOnAdoption;
  NoteTime(size, now);
  if (size < offset_) offset_ = 0;  // cut off by its program
  if (size - offset_ > behind_max) StartAt(file, size - behind_max);
  // One for all files: agents have one thread, and little memory.
  static std::array<char, kScanChunkBytes> chunk;
  while (offset_ < size && budget > 0) {
    const size_t wanted = std::min<uint64_t>({chunk.size(), size - offset_, budget});
    const size_t got = file.Read(offset_, std::span(chunk).first(wanted));
    if (got == 0) return false;  // it will say so at the next look
    scanner_.Feed(std::string_view(chunk.data(), got), offset_);
    offset_ += got;
    budget -= got;
  }
  return offset_ < size;
}

LogScan::Said LogScan::ReadAll(LogFile& file, Monotonic now) {
  file.Look();
  uint64_t budget = kScanBehindMax;
  ReadOn(file, budget, now);
  scanner_.Finish();
  scanner_.Forget(NewsFrom(file.size()));
  return {scanner_.Matches(), scanner_.last_error_line()};
}

// With the first whole line from there on.
void LogScan::StartAt(LogFile& file, uint64_t offset) {
  std::array<char, kScanStartBytes> start;
  const size_t got = file.Read(offset, start);
  const size_t line_end = std::string_view(start.data(), got).find('\n');
  offset_ = offset + (line_end == std::string_view::npos ? 0 : line_end + 1);
}

void LogScan::NoteTime(uint64_t size, Monotonic now) {
  // What was there before we came is of an unknown age: so much of it may have been said just now.
  if (!std::exchange(has_begun_, true)) {
    older_ = {now, size - std::min(size, kScanOnAdoption)};
    newer_ = {now, size};
  }
  if (size < newer_.offset) older_ = newer_ = {now, 0};  // cut off by its program
  if (now - newer_.time < kSaidJustNow) return;
  older_ = newer_;
  newer_ = {now, size};
  scanner_.Forget(NewsFrom(size));
}

uint64_t LogScan::NewsFrom(uint64_t size) const {
  return std::min(older_.offset, size - std::min<uint64_t>(size, kLogTailMaxBytes));
}

}  // namespace aimaster::agent
