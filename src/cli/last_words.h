// The last words of a failed rank: the traceback that ends with its telling line, or the lines before it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace aimaster::cli {

inline constexpr size_t kLastWordsMax = 14;            // lines
inline constexpr uint64_t kLastWordsReach = 16 << 10;  // bytes before the telling line

// Pure: of `text`, which ends with the telling line. Of a long traceback the beginning and the end are kept, with "…"
// in between. Lines are safe to print.
std::vector<std::string> LastWordsOf(std::string_view text);

// Of the line at `offset` in the file; empty when it can't be read.
std::vector<std::string> ReadLastWords(const std::string& path, uint64_t offset);

}  // namespace aimaster::cli
