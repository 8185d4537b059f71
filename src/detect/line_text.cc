#include "detect/line_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/character_border.h"
#include "detect/byte_vector.h"

namespace aimaster {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::string_view kEllipsis = "…";

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

bool IsPlain(char c) { return (c >= 0x20 && c < 0x7f) || c == '\t'; }

// Whether all eight characters are printable ASCII; a tab may be taken for one that is not.
bool ArePlain(uint64_t bytes) {
  constexpr uint64_t kEach = 0x0101010101010101;
  const uint64_t below_blank = (bytes - 0x20 * kEach) & ~bytes;
  const uint64_t above_tilde = bytes + kEach;  // 0x7f becomes 0x80; the carries of greater ones don't matter
  return ((below_blank | above_tilde | bytes) & (0x80 * kEach)) == 0;
}

// How much at the start is printable ASCII and tabs alone. Eight bytes at a time: nearly every line is, and all of them
// are asked.
size_t PlainLength(std::string_view text) {
  size_t at = 0;
  for (uint64_t bytes; at + sizeof bytes <= text.size(); at += sizeof bytes) {
    std::memcpy(&bytes, text.data() + at, sizeof bytes);
    if (!ArePlain(bytes)) break;
  }
  while (at < text.size() && IsPlain(text[at])) ++at;
  return at;
}

// Moves the plain characters at the start of `text` to `to`; returns where they end there.
char* MovePlain(std::string_view& text, char* to) {
  size_t at = 0;
  for (uint64_t bytes; at + sizeof bytes <= text.size(); at += sizeof bytes) {
    std::memcpy(&bytes, text.data() + at, sizeof bytes);
    if (!ArePlain(bytes)) break;
    std::memcpy(to + at, &bytes, sizeof bytes);
  }
  for (; at < text.size() && IsPlain(text[at]); ++at) to[at] = text[at];
  text.remove_prefix(at);
  return to + at;
}

bool IsControl(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\0') || c == 0x7f;
}

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

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }

// "rank3", "trainer12": a lower-case word that ends in a number.
bool IsNumbered(std::string_view name) {
  size_t letters = 0;
  while (letters < name.size() && (IsLower(name[letters]) || name[letters] == '_')) ++letters;
  return letters > 0 && letters < name.size() && LeadingDigits(name.substr(letters)) == name.size() - letters;
}

// "rank3", "rank 3", "Rank 3", "rank: 3".
bool IsRankWord(std::string_view inside) {
  for (std::string_view word : {"rank: ", "rank ", "Rank ", "rank"}) {
    if (!inside.starts_with(word)) continue;
    const std::string_view number = inside.substr(word.size());
    return !number.empty() && LeadingDigits(number) == number.size();
  }
  return false;
}

// Length of "[rank3]:", "[rank3] ", "[rank: 3] ", "[3] " or "[pod/worker-0/main] " at the start of text, else 0.
size_t BracketLabel(std::string_view text) {
  constexpr size_t kLengthMax = 160;
  if (text.empty() || text[0] != '[') return 0;
  const size_t close = text.substr(0, kLengthMax).find(']');
  if (close == std::string_view::npos) return 0;
  const std::string_view inside = text.substr(1, close - 1);
  const std::string_view after = text.substr(close + 1);
  if (after.starts_with(':')) return IsNumbered(inside) || IsRankWord(inside) ? close + 2 : 0;
  if (!after.empty() && !IsBlank(after[0])) return 0;
  const bool number = !inside.empty() && inside.size() <= 5 && LeadingDigits(inside) == inside.size();
  return number || IsRankWord(inside) || inside.starts_with("pod/") ? close + 1 : 0;
}

// Length of "[1,3]<stderr>:" at the start of text, whatever mpirun puts in front of it, else 0.
size_t StreamLabel(std::string_view text) {
  constexpr size_t kLengthMax = 160;
  const std::string_view head = text.substr(0, kLengthMax);
  const size_t at = head.find("]<std");
  if (at == std::string_view::npos) return 0;
  for (std::string_view stream : {"]<stderr>:", "]<stdout>:", "]<stddiag>:"}) {
    if (!head.substr(at).starts_with(stream)) continue;
    const bool plain = std::all_of(head.begin(), head.begin() + static_cast<std::ptrdiff_t>(at), [](char c) {
      return IsDigit(c) || IsLower(c) || IsUpper(c) || std::string_view(" ,:@[]._-").find(c) != std::string_view::npos;
    });
    if (plain && head.substr(0, at).find('[') != std::string_view::npos) return at + stream.size();
  }
  return 0;
}

// Is a word of lower-case letters, digits and .-_ a host, or an instance of a job: "worker-0", "node01", "10.0.0.4",
// "gpu-3.cluster.local".
bool IsHost(std::string_view name) {
  const bool characters = std::all_of(
      name.begin(), name.end(), [](char c) { return IsLower(c) || IsDigit(c) || c == '-' || c == '.' || c == '_'; });
  if (!characters || name.empty() || name.starts_with("python")) return false;
  const std::string_view first = name.substr(0, name.find('.'));
  if (first.empty() || !IsDigit(first.back())) return false;
  const bool address = std::all_of(name.begin(), name.end(), [](char c) { return IsDigit(c) || c == '.'; });
  if (address) return std::count(name.begin(), name.end(), '.') == 3;
  return IsLower(first[0]);
}

// Length of "worker-0:", "worker_1  |" or "  7:", followed by a blank or nothing, else 0.
size_t NameLabel(std::string_view text) {
  constexpr size_t kLengthMax = 120;
  const std::string_view head = text.substr(0, kLengthMax);
  size_t start = 0;
  while (start < head.size() && head[start] == ' ') ++start;
  size_t end = start;
  while (end < head.size() &&
         (IsLower(head[end]) || IsDigit(head[end]) || head[end] == '-' || head[end] == '.' || head[end] == '_')) {
    ++end;
  }
  size_t mark = end;
  while (mark < head.size() && head[mark] == ' ') ++mark;
  if (end == start || mark == head.size()) return 0;
  const std::string_view name = head.substr(start, end - start);
  const bool bar = text[mark] == '|' && mark > end && start == 0 && IsHost(name);  // compose pads the name
  if (!bar && (text[mark] != ':' || mark != end)) return 0;
  if (mark + 1 < text.size() && !IsBlank(text[mark + 1])) return 0;
  if (bar) return mark + 1;
  if (LeadingDigits(name) == name.size()) return name.size() <= 5 ? mark + 1 : 0;
  return start == 0 && IsHost(name) ? mark + 1 : 0;
}

// Does more text follow what looks like `shape`, in which a 0 stands for any digit.
bool HasShape(std::string_view text, std::string_view shape) {
  if (text.size() <= shape.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == '0' ? !IsDigit(text[i]) : text[i] != shape[i]) return false;
  }
  return true;
}

// Length of "2025-03-01T10:00:00.123456789Z " at the start of text, with " stdout F" where the container runtime wrote
// it, else 0.
size_t TimeLabel(std::string_view text) {
  constexpr std::string_view kShape = "0000-00-00T00:00:00";
  if (!HasShape(text, kShape)) return 0;
  size_t at = kShape.size();
  if (text[at] == '.') at += 1 + LeadingDigits(text.substr(at + 1));
  if (at < text.size() && text[at] == 'Z') {
    ++at;
  } else if (at + 6 <= text.size() && (text[at] == '+' || text[at] == '-') && text[at + 3] == ':') {
    at += 6;
  } else {
    return 0;
  }
  if (at < text.size() && !IsBlank(text[at])) return 0;
  for (std::string_view stream : {" stdout F", " stderr F", " stdout P", " stderr P"}) {
    if (text.substr(at).starts_with(stream)) return at + stream.size();
  }
  return at;
}

// Length of "2025-03-01 10:00:00,123 " at the start of text, where the label of a rank follows, else 0. Before anything
// else a date is what the program says.
size_t DateLabel(std::string_view text) {
  constexpr std::string_view kShape = "0000-00-00 00:00:00";
  if (!HasShape(text, kShape)) return 0;
  size_t at = kShape.size();
  if (text[at] == '.' || text[at] == ',') at += 1 + LeadingDigits(text.substr(at + 1));
  if (at >= text.size() || !IsBlank(text[at])) return 0;
  const std::string_view rest = text.substr(at + 1);
  const bool names_rank = (rest.starts_with("[rank") || rest.starts_with("[Rank")) && BracketLabel(rest) > 0;
  return names_rank ? at : 0;
}

// Length of " 47%|███▏ | 47/100 [00:12<00:13,  4.1it/s, loss=0.3]" (tqdm) at the start of text, also with words before
// it, where more text follows; else 0.
size_t ProgressBar(std::string_view text) {
  constexpr size_t kTitleMax = 200;
  const size_t percent = text.substr(0, kTitleMax).find("%|");
  if (percent == std::string_view::npos) return 0;
  const size_t bar = text.find("| ", percent + 2);
  if (bar == std::string_view::npos) return 0;
  const size_t open = text.find('[', bar);
  if (open == std::string_view::npos) return 0;
  const size_t close = text.find(']', open);
  if (close == std::string_view::npos) return 0;
  const std::string_view inside = text.substr(open, close - open);
  const bool speed = inside.find('<') != std::string_view::npos || inside.find("/s") != std::string_view::npos;
  return speed && text.find_first_not_of(" \t", close + 1) != std::string_view::npos ? close + 1 : 0;
}

// Length of "[36m" at the start of text, else 0: what is left of a colour where a log was copied without its escapes.
size_t ColourRest(std::string_view text) {
  constexpr size_t kLengthMax = 12;
  if (!text.starts_with('[')) return 0;
  const size_t end = text.substr(0, kLengthMax).find_first_not_of("0123456789;", 1);
  return end != std::string_view::npos && end > 1 && text[end] == 'm' ? end + 1 : 0;
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

// Where IsControl is so.
ByteVector ControlsAmong(const char* text) {
  const ByteVector bytes = LoadBytes(text);
  const auto low = (bytes < 0x20) & (bytes != '\t') & (bytes != '\n') & (bytes != '\r') & (bytes != '\0');
  return reinterpret_cast<ByteVector>(low | (bytes == 0x7f));
}

}  // namespace

std::string_view CleanLine(std::string_view line, std::string& buffer) {
  const size_t plain = PlainLength(line);
  if (plain == line.size()) return TrimEnd(line);
  // A byte becomes three at most. Written to by pointer: this is asked of each line that has a colour.
  if (buffer.size() < 3 * line.size()) buffer.resize(3 * line.size());
  char* const begin = buffer.data();
  char* end = begin + plain;
  std::memcpy(begin, line.data(), plain);
  for (std::string_view rest = line.substr(plain); !rest.empty(); end = MovePlain(rest, end)) {
    const auto c = static_cast<unsigned char>(rest[0]);
    size_t taken = 1;
    if (c == 0x1b) {
      taken = AnsiLength(rest);
    } else if (c == '\b') {
      while (end > begin && IsContinuation(end[-1])) --end;
      if (end > begin) --end;
    } else if (c < 0x80) {
      *end++ = c == '\t' ? '\t' : ' ';
    } else if (const size_t length = Utf8Length(rest); length > 0) {
      std::memcpy(end, rest.data(), length);
      end += length;
      taken = length;
    } else {
      std::memcpy(end, kReplacement.data(), kReplacement.size());
      end += kReplacement.size();
    }
    rest.remove_prefix(taken);
  }
  return TrimEnd({begin, static_cast<size_t>(end - begin)});
}

size_t FindControl(std::string_view text, size_t from) {
  constexpr size_t kVector = sizeof(ByteVector), kStep = 4 * kVector;
  size_t at = from;
  for (; at + kStep <= text.size(); at += kStep) {
    ByteVector any = {};
    for (size_t i = 0; i < kStep; i += kVector) any |= ControlsAmong(text.data() + at + i);
    if (IsAnySet(any)) break;
  }
  while (at + kVector <= text.size() && !IsAnySet(ControlsAmong(text.data() + at))) at += kVector;
  while (at < text.size() && !IsControl(text[at])) ++at;
  return at;
}

RankLine SplitRankLabels(std::string_view line) {
  constexpr int kLabelsMax = 6;
  const char* label = nullptr;
  const char* label_end = nullptr;
  for (int i = 0; i < kLabelsMax; ++i) {
    const size_t who = std::max({BracketLabel(line), StreamLabel(line), NameLabel(line), ActorLabel(line)});
    const size_t length = std::max({who, TimeLabel(line), DateLabel(line), ProgressBar(line), ColourRest(line)});
    if (length == 0) break;
    if (who == length) {
      if (!label) label = line.data();
      label_end = line.data() + length;
    }
    line.remove_prefix(length);
    const bool separated = !line.empty() && IsBlank(line[0]);
    if (separated) line.remove_prefix(1);
  }
  return {label ? std::string_view(label, static_cast<size_t>(label_end - label)) : std::string_view{}, line};
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
  line.resize(CharacterBorder(line, max_bytes > kEllipsis.size() ? max_bytes - kEllipsis.size() : 0));
  if (max_bytes >= kEllipsis.size()) line += kEllipsis;
  return line;
}

}  // namespace aimaster
