// The error file protocol of torchelastic: a rank that dies by an exception leaves a small JSON file with its text.
// Both shapes that frameworks write are read: {"message": "text"} and {"message": {"message": …, "extraInfo": …}}.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace aimaster::agent {

struct ErrorFile {
  std::string message;  // at most kErrorTextMaxBytes, valid UTF-8
  int64_t time_ns = 0;  // 0: not said
  bool operator==(const ErrorFile&) const = default;
};

// Nothing when the text is no such file; a program may write there what it likes.
std::optional<ErrorFile> ParseErrorFile(std::string_view text);

// At most kErrorTextMaxBytes of it, cut between characters, invalid bytes replaced by '?'.
std::string SafeText(std::string_view text);

}  // namespace aimaster::agent
