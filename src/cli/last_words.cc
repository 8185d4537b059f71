#include "cli/last_words.h"

#include <algorithm>
#include <fstream>

#include "cli/text.h"

namespace aimaster::cli {
namespace {

constexpr size_t kFirstKept = 3;        // of a traceback that is cut: its header and the outermost frame
constexpr size_t kLinesWithoutOne = 3;  // where there is no traceback
constexpr size_t kLineMax = 4 << 10;    // of the telling line

std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    line = line.substr(line.rfind('\r') + 1);  // what a progress bar left; npos + 1 is 0
    if (line.find_first_not_of(std::string_view(" \t\0", 3)) != std::string_view::npos) lines.push_back(OneLine(line));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

std::vector<std::string> LastWordsOf(std::string_view text) {
  std::vector<std::string> lines = Lines(text);
  const auto header = std::find_if(lines.rbegin(), lines.rend(), [](const std::string& line) {
    return line.find("Traceback (most recent call last)") != std::string::npos;
  });
  const size_t kept = header == lines.rend() ? std::min(kLinesWithoutOne, lines.size())
                                             : static_cast<size_t>(header - lines.rbegin()) + 1;
  lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(kept));
  if (lines.size() > kLastWordsMax) {
    const auto begin = lines.begin() + kFirstKept;
    const auto end = lines.end() - static_cast<std::ptrdiff_t>(kLastWordsMax - kFirstKept - 1);
    lines.insert(lines.erase(begin, end), "  …");
  }
  return lines;
}

std::vector<std::string> ReadLastWords(const std::string& path, uint64_t offset) {
  std::ifstream file(path, std::ios::binary);
  const uint64_t begin = offset > kLastWordsReach ? offset - kLastWordsReach : 0;
  if (!file.seekg(static_cast<std::streamoff>(begin))) return {};
  std::string text(offset - begin + kLineMax, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() <= offset - begin) return {};
  text.resize(std::min(text.find('\n', offset - begin), text.size()));
  return LastWordsOf(text);
}

}  // namespace aimaster::cli
