// CharacterBorder: where UTF-8 text can be cut without cutting a character in two.
#pragma once

#include <cstddef>
#include <string_view>

namespace aimaster {

// One of the bytes of a character that are not its first.
inline bool IsContinuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// The last border between characters at or before byte `at`; 0 where there is none. Text that ends before is not cut.
inline size_t CharacterBorder(std::string_view text, size_t at) {
  if (at >= text.size()) return text.size();
  while (at > 0 && IsContinuation(text[at])) --at;
  return at;
}

}  // namespace aimaster
