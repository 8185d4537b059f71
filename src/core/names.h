// Names: an enum's values and how they are written, as one table that is read both ways.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

namespace aimaster {

template <typename T, size_t N>
using Names = std::array<std::pair<T, std::string_view>, N>;

template <typename T, size_t N>
std::string_view NameIn(const Names<T, N>& names, T value) {
  for (const auto& [known, name] : names) {
    if (known == value) return name;
  }
  return "unknown";
}

template <typename T, size_t N>
std::optional<T> ParseIn(const Names<T, N>& names, std::string_view name) {
  for (const auto& [value, known] : names) {
    if (known == name) return value;
  }
  return std::nullopt;
}

}  // namespace aimaster
