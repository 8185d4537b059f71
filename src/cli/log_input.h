// LogInput: a log that somebody named, read piece by piece, whatever it is and however large; and where a line is in
// it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace aimaster::cli {

inline constexpr std::string_view kStandardInput = "-";

// Closed at the end; standard input stays open.
class LogInput {
 public:
  // A file, a pipe, or "-". A folder, or what does not exist, is a wrong usage.
  static Result<LogInput> Open(const std::string& path);
  LogInput(LogInput&& other) noexcept;
  ~LogInput();

  // The next bytes, valid until the next call; empty at the end.
  Result<std::string_view> Read();
  // A file whose bytes are all still there: reading it once more, lines can be counted.
  bool has_lines() const { return has_lines_; }

 private:
  LogInput(std::string path, int descriptor, bool has_lines);
  std::string path_;
  int descriptor_;
  bool has_lines_;
  std::vector<char> buffer_;
};

// "rank2.err:1841", as editors take it; "rank2.err, byte 70113" where lines can't be counted.
std::string PositionIn(const std::string& path, uint64_t offset);

}  // namespace aimaster::cli
