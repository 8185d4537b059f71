// LogFile: a rank's output file, read from front to back while it grows. Bytes that --log-max-bytes has freed are holes
// now: they are skipped, not printed as the zero bytes that a plain read gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace aimaster::cli {

// Not thread-safe. Nothing here waits for the writer, or makes it wait.
class LogFile {
 public:
  // None when it can't be opened (yet).
  static std::optional<LogFile> Open(const std::filesystem::path& path);
  LogFile(LogFile&& other) noexcept;
  LogFile& operator=(LogFile&& other) noexcept;
  ~LogFile();

  // Appends the next bytes, at most `max`; how many, 0 at what is the end for now. After a gap it goes on at the start
  // of a line. A file that was truncated is read from its start again.
  size_t Read(std::string& out, size_t max);

  // Goes to where the last `lines` lines begin.
  void SeekToLastLines(uint64_t lines);

  uint64_t skipped_bytes() const { return skipped_bytes_; }

 private:
  explicit LogFile(int descriptor) : descriptor_(descriptor) {}
  // The first offset from `offset` on where there are data; the size of the file where there are none.
  uint64_t DataFrom(uint64_t offset) const;
  uint64_t Size() const;

  int descriptor_ = -1;
  uint64_t offset_ = 0;
  uint64_t skipped_bytes_ = 0;
  bool behind_gap_ = false;  // the rest of a line whose start is gone is left out
};

}  // namespace aimaster::cli
