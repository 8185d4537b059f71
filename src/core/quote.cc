#include "core/quote.h"

#include <cstdint>

namespace aimaster {
namespace {

// The length of the printable character at the start of a non-empty text; 0 where there is none. Surrogates, overlong
// forms and C1 controls are none either.
size_t PrintableLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  uint32_t code = first & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3fu);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  const bool line_separator = code == 0x2028 || code == 0x2029;
  return overlong || surrogate || line_separator || code < 0xa0 || code > 0x10ffff ? 0 : length;
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    size_t length = PrintableLength(text);
    std::string piece(text.substr(0, length));
    if (length == 0) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      const auto byte = static_cast<uint8_t>(text[0]);
      piece = {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
      length = 1;
    }
    if (out.size() + piece.size() > kQuotedMaxBytes) return out + "…";
    out += piece;
    text.remove_prefix(length);
  }
  return out;
}

std::string Quoted(std::string_view text) { return "'" + Printable(text) + "'"; }

bool IsPrintable(std::string_view text) {
  while (!text.empty()) {
    const size_t length = PrintableLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace aimaster
