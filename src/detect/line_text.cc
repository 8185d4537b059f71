#include "detect/line_text.h"

#include <algorithm>
#include <cstdint>

namespace aimaster {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::string_view kEllipsis = "…";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsBlank(char c) { return c == ' ' || c == '\t'; }

std::string_view TrimEnd(std::string_view text) {
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

// Length of the ANSI sequence that text (which starts with ESC) starts with.
size_t AnsiLength(std::string_view text) {
  if (text.size() < 2) return text.size();
  size_t at = 2;
  if (text[1] == '[') {  // CSI … final byte
    while (at < text.size() && (text[at] < 0x40 || text[at] > 0x7e)) {
      if (text[at] < 0x20) return at;  // broken off
      ++at;
    }
    return std::min(at + 1, text.size());
  }
  if (text[1] == ']') {  // OSC … BEL or ESC backslash
    while (at < text.size() && text[at] != '\a' && text[at] != '\x1b') ++at;
    return std::min(at < text.size() && text[at] == '\x1b' ? at + 2 : at + 1, text.size());
  }
  return static_cast<unsigned char>(text[1]) < 0x80 ? 2 : 1;
}

// Length of the valid UTF-8 sequence at the start of text (first byte ≥ 0x80), or 0.
size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = byte(0);
  const size_t length = first >= 0xc2 && first <= 0xdf   ? 2
                        : first >= 0xe0 && first <= 0xef ? 3
                        : first >= 0xf0 && first <= 0xf4 ? 4
                                                         : 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const unsigned second = byte(1);
  if (first == 0xe0 && second < 0xa0) return 0;  // overlong
  if (first == 0xed && second > 0x9f) return 0;  // a surrogate
  if (first == 0xf0 && second < 0x90) return 0;  // overlong
  if (first == 0xf4 && second > 0x8f) return 0;  // beyond Unicode
  return length;
}

size_t LeadingDigits(std::string_view text) { return std::min(text.find_first_not_of("0123456789"), text.size()); }

// Length of "[rank3]:", "[default3]:" or "[1,3]<stderr>:" at the start of text, else 0.
size_t BracketLabel(std::string_view text) {
  if (text.empty() || text[0] != '[') return 0;
  const size_t close = text.substr(0, 40).find(']');
  if (close == std::string_view::npos) return 0;
  const std::string_view inside = text.substr(1, close - 1);
  const std::string_view after = text.substr(close + 1);
  for (std::string_view name : {"rank", "default", "worker"}) {
    if (!inside.starts_with(name)) continue;
    const std::string_view number = inside.substr(name.size());
    if (!number.empty() && LeadingDigits(number) == number.size() && after.starts_with(':')) return close + 2;
  }
  const size_t comma = inside.find(',');
  if (comma != std::string_view::npos && comma > 0 && LeadingDigits(inside) == comma &&
      LeadingDigits(inside.substr(comma + 1)) == inside.size() - comma - 1) {
    for (std::string_view stream : {"<stderr>:", "<stdout>:"}) {
      if (after.starts_with(stream)) return close + 1 + stream.size();
    }
  }
  return 0;
}

// Length of "worker-0:" (a name that ends in a number) or "  7:", followed by a blank or nothing, else 0.
size_t NameLabel(std::string_view text) {
  const size_t start = std::min(text.find_first_not_of(' '), text.size());
  const size_t colon = text.substr(0, 120).find(':');
  if (colon == std::string_view::npos || colon <= start) return 0;
  if (colon + 1 < text.size() && !IsBlank(text[colon + 1])) return 0;
  const std::string_view name = text.substr(start, colon - start);
  if (LeadingDigits(name) == name.size()) return name.size() <= 5 ? colon + 1 : 0;
  if (start > 0) return 0;
  size_t number = name.size();
  while (number > 0 && IsDigit(name[number - 1])) --number;
  const bool named =
      number < name.size() && number >= 2 && name[number - 1] == '-' &&
      std::all_of(
          name.begin(), name.end(),
          [](unsigned char c) {
            return (c >= 'a' && c <= 'z') || IsDigit(static_cast<char>(c)) || c == '-' || c == '.' || c == '_';
          });
  return named ? colon + 1 : 0;
}

// Length of "(TrainController pid=79312)" at the start of text, else 0.
size_t ActorLabel(std::string_view text) {
  if (text.empty() || text[0] != '(') return 0;
  const size_t close = text.substr(0, 160).find(')');
  if (close == std::string_view::npos) return 0;
  const std::string_view inside = text.substr(1, close - 1);
  const size_t pid = inside.find(" pid=");
  return pid != std::string_view::npos && pid + 5 < inside.size() && IsDigit(inside[pid + 5]) ? close + 1 : 0;
}

}  // namespace

std::string_view CleanLine(std::string_view line, std::string& buffer) {
  const bool clean = std::all_of(line.begin(), line.end(), [](char c) { return (c >= 0x20 && c < 0x7f) || c == '\t'; });
  if (clean) return TrimEnd(line);
  buffer.clear();
  for (size_t at = 0; at < line.size();) {
    const auto c = static_cast<unsigned char>(line[at]);
    if (c == 0x1b) {
      at += AnsiLength(line.substr(at));
    } else if (c < 0x80) {
      buffer += (c < 0x20 && c != '\t') || c == 0x7f ? ' ' : static_cast<char>(c);
      ++at;
    } else if (const size_t length = Utf8Length(line.substr(at)); length > 0) {
      buffer.append(line, at, length);
      at += length;
    } else {
      buffer += kReplacement;
      ++at;
    }
  }
  return TrimEnd(buffer);
}

std::string_view StripRankPrefixes(std::string_view line) {
  constexpr int kLabelsMax = 4;
  for (int i = 0; i < kLabelsMax; ++i) {
    const size_t length = std::max({BracketLabel(line), NameLabel(line), ActorLabel(line)});
    if (length == 0) break;
    line.remove_prefix(length);
    if (!line.empty() && IsBlank(line[0])) line.remove_prefix(1);
  }
  return line;
}

std::string OneLine(std::string_view text, size_t max_bytes) {
  // What can't be shown need not be looked at: cleaning only shrinks text where it holds ANSI sequences.
  text = text.substr(0, 4 * max_bytes);
  std::string buffer;
  const std::string_view clean = CleanLine(text, buffer);
  std::string line;
  for (char c : clean) {
    if (!IsBlank(c)) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  if (line.size() <= max_bytes) return line;
  size_t cut = max_bytes > kEllipsis.size() ? max_bytes - kEllipsis.size() : 0;
  while (cut > 0 && (static_cast<unsigned char>(line[cut]) & 0xc0) == 0x80) --cut;
  line.resize(cut);
  if (max_bytes >= kEllipsis.size()) line += kEllipsis;
  return line;
}

}  // namespace aimaster
