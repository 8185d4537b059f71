// Small steps through a tool's lines, for the parsers.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace aimaster::stacks {

// The next line, without its end; false when there is none.
inline bool NextLine(std::string_view& text, std::string_view& line) {
  if (text.empty()) return false;
  const size_t end = text.find('\n');
  line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return true;
}

// Takes `word` from the front, if it is there.
inline bool Skip(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

// Takes what is before the next `end`, and `end` itself.
inline std::optional<std::string_view> Until(std::string_view& text, std::string_view end) {
  const size_t at = text.find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at + end.size());
  return taken;
}

// Takes a number from the front: decimal, or hexadecimal behind 0x.
inline std::optional<uint64_t> TakeNumber(std::string_view& text) {
  const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
  const std::string_view digits = is_hex ? text.substr(2) : text;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number, is_hex ? 16 : 10);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

inline std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// "file.c:12" or "file.c:12:5": takes the numbers off the end of a file's name; 0 where there are none.
inline uint32_t TakeLineOff(std::string_view& file) {
  uint32_t line = 0;
  for (int i = 0; i < 2; ++i) {
    const size_t colon = file.rfind(':');
    if (colon == std::string_view::npos || colon + 1 == file.size()) break;
    const std::string_view digits = file.substr(colon + 1);
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc{} || end != digits.data() + digits.size()) break;
    line = number;
    file = file.substr(0, colon);
  }
  return line;
}

}  // namespace aimaster::stacks
