#include "cli/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

namespace aimaster::cli {
namespace {

constexpr size_t kBlock = 64 << 10;

size_t ReadAt(int descriptor, char* bytes, size_t size, uint64_t offset) {
  const ssize_t got = pread(descriptor, bytes, size, static_cast<off_t>(offset));
  return got > 0 ? static_cast<size_t>(got) : 0;
}

}  // namespace

std::optional<LogFile> LogFile::Open(const std::filesystem::path& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return std::nullopt;
  return LogFile(descriptor);
}

LogFile::LogFile(LogFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      offset_(other.offset_),
      skipped_bytes_(other.skipped_bytes_),
      behind_gap_(other.behind_gap_) {}

LogFile& LogFile::operator=(LogFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  offset_ = other.offset_;
  skipped_bytes_ = other.skipped_bytes_;
  behind_gap_ = other.behind_gap_;
  return *this;
}

LogFile::~LogFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

uint64_t LogFile::Size() const {
  struct stat status{};
  return fstat(descriptor_, &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

uint64_t LogFile::DataFrom(uint64_t offset) const {
  const off_t data = lseek(descriptor_, static_cast<off_t>(offset), SEEK_DATA);
  if (data >= 0) return static_cast<uint64_t>(data);
  // Behind the last data: the end. A file system that knows nothing of holes has none.
  return errno == ENXIO ? Size() : offset;
}

size_t LogFile::Read(std::string& out, size_t max) {
  const uint64_t size = Size();
  if (size < offset_) {
    offset_ = 0;
    behind_gap_ = false;
  }
  while (offset_ < size) {
    const uint64_t data = DataFrom(offset_);
    if (data > offset_) {
      skipped_bytes_ += data - offset_;
      offset_ = data;
      behind_gap_ = true;
      continue;
    }
    const size_t before = out.size();
    out.resize(before + std::min<uint64_t>({max, kBlock, size - offset_}));
    const size_t got = ReadAt(descriptor_, out.data() + before, out.size() - before, offset_);
    out.resize(before + got);
    if (got == 0) return 0;
    // Freed while it was being read: what was read may be zeros.
    if (DataFrom(offset_) > offset_) {
      out.resize(before);
      continue;
    }
    offset_ += got;
    if (!behind_gap_) return got;
    const size_t line_end = std::string_view(out).substr(before).find('\n');
    const size_t cut = line_end == std::string_view::npos ? got : line_end + 1;
    out.erase(before, cut);
    skipped_bytes_ += cut;
    behind_gap_ = line_end == std::string_view::npos;
    if (out.size() > before) return out.size() - before;
  }
  return 0;
}

void LogFile::SeekToLastLines(uint64_t lines) {
  const uint64_t size = Size();
  std::array<char, kBlock> block;
  uint64_t end = size;
  uint64_t left = lines;
  offset_ = 0;
  behind_gap_ = false;
  if (lines == 0) offset_ = size;
  while (end > 0 && left > 0) {
    const uint64_t begin = end > block.size() ? end - block.size() : 0;
    const size_t got = ReadAt(descriptor_, block.data(), end - begin, begin);
    for (size_t i = got; i-- > 0;) {
      // The line break at the very end ends the last line, it does not begin one.
      if (block[i] != '\n' || begin + i + 1 == size) continue;
      if (--left == 0) {
        offset_ = begin + i + 1;
        return;
      }
    }
    // Nothing but a hole from here to the front: there are not that many lines.
    if (DataFrom(begin) > begin && DataFrom(begin) >= end) return;
    end = begin;
  }
}

}  // namespace aimaster::cli
