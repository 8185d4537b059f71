// Fnv1a: a short digest of a text, FNV-1a of 64 bits. It names things and notices changes; it protects from nobody.
#pragma once

#include <cstdint>
#include <string_view>

namespace aimaster {

inline constexpr uint64_t kFnv1aOfNothing = 0xcbf29ce484222325;

// `before` is the digest of what stands before this text.
constexpr uint64_t Fnv1a(std::string_view text, uint64_t before = kFnv1aOfNothing) {
  for (const char c : text) before = (before ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return before;
}

}  // namespace aimaster
