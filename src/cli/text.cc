#include "cli/text.h"

#include <cstdint>

namespace aimaster::cli {
namespace {

struct Character {
  size_t bytes = 1;
  uint32_t code = 0;
  bool valid = false;
};

// The first character of a non-empty text.
Character FirstCharacter(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {1, first, true};
  const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return {};
  uint32_t code = first & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (overlong || surrogate || code > 0x10ffff) return {};
  return {bytes, code, true};
}

// Marks that turn the direction of text around, and line separators: they move what is beside them.
bool IsControl(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 ||
         (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

size_t Columns(uint32_t code) {
  const bool none = (code >= 0x300 && code <= 0x36f) || (code >= 0x200b && code <= 0x200f) ||
                    (code >= 0xfe00 && code <= 0xfe0f) || code == 0xfeff;
  if (none) return 0;
  const bool wide = (code >= 0x1100 && code <= 0x115f) || (code >= 0x2e80 && code <= 0xa4cf) ||
                    (code >= 0xac00 && code <= 0xd7a3) || (code >= 0xf900 && code <= 0xfaff) ||
                    (code >= 0xfe30 && code <= 0xfe6f) || (code >= 0xff00 && code <= 0xff60) ||
                    (code >= 0xffe0 && code <= 0xffe6) || (code >= 0x1f300 && code <= 0x1faff) ||
                    (code >= 0x20000 && code <= 0x3fffd);
  return wide ? 2 : 1;
}

}  // namespace

std::string OneLine(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    const Character character = FirstCharacter(text);
    if (!character.valid) {
      line += '?';
    } else if (IsControl(character.code)) {
      line += ' ';
    } else {
      line += text.substr(0, character.bytes);
    }
    text.remove_prefix(character.bytes);
  }
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

size_t DisplayWidth(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) {
    const Character character = FirstCharacter(text);
    width += character.valid ? Columns(character.code) : 1;
    text.remove_prefix(character.bytes);
  }
  return width;
}

std::string CutToWidth(std::string_view text, size_t width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  if (width == 0) return "";
  std::string cut;
  size_t taken = 0;
  while (!text.empty()) {
    const Character character = FirstCharacter(text);
    const size_t columns = character.valid ? Columns(character.code) : 1;
    if (taken + columns > width - 1) break;
    taken += columns;
    cut += text.substr(0, character.bytes);
    text.remove_prefix(character.bytes);
  }
  return cut + "…";
}

std::vector<std::string> Wrap(std::string_view text, size_t width) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view paragraph = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (paragraph.empty() || paragraph.front() == ' ') {
      lines.emplace_back(paragraph);
      continue;
    }
    std::string line;
    while (!paragraph.empty()) {
      const size_t blank = paragraph.find(' ');
      const std::string_view word = paragraph.substr(0, blank);
      paragraph.remove_prefix(blank == std::string_view::npos ? paragraph.size() : blank + 1);
      if (!line.empty() && DisplayWidth(line) + 1 + DisplayWidth(word) > width) {
        lines.push_back(std::move(line));
        line.clear();
      }
      line += (line.empty() ? "" : " ") + std::string(word);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace aimaster::cli
