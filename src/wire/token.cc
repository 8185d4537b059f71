#include "wire/token.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

#include "wire/limits.h"

namespace aimaster {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

bool IsToken(std::string_view text) {
  return !text.empty() && text.size() <= kTokenMax &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
}

std::optional<std::string_view> BearerToken(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() <= kScheme.size()) return std::nullopt;
  for (size_t i = 0; i < kScheme.size(); ++i) {
    if (Lower(authorization[i]) != kScheme[i]) return std::nullopt;
  }
  std::string_view token = authorization.substr(kScheme.size());
  while (token.starts_with(' ')) token.remove_prefix(1);
  if (!IsToken(token)) return std::nullopt;
  return token;
}

bool SameToken(std::string_view given, std::string_view expected) {
  if (expected.empty()) return false;
  // volatile: the compiler must not stop at the first difference either.
  volatile unsigned char difference = given.size() == expected.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    difference = difference | static_cast<unsigned char>(given[i] ^ expected[i % expected.size()]);
  }
  return difference == 0;
}

}  // namespace aimaster
