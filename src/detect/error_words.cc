#include "detect/error_words.h"

#include <algorithm>
#include <array>

namespace aimaster {
namespace {

// "torch._dynamo.exc.Unsupported: …", "MyFailure: …": an exception of Python, by its name.
bool IsException(std::string_view line) {
  const std::string_view name = line.substr(0, line.find(": "));
  if (name.empty() || name.size() == line.size()) return false;
  const auto is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  const auto is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const bool is_name = std::all_of(name.begin(), name.end(), [&](char c) {
    return is_upper(c) || is_lower(c) || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
  const bool is_dotted = name.find('.') != std::string_view::npos;
  const bool is_camel = is_upper(name[0]) && std::count_if(name.begin(), name.end(), is_upper) > 1 &&
                        std::any_of(name.begin(), name.end(), is_lower);
  return is_name && (is_camel || (is_dotted && std::any_of(name.begin(), name.end(), is_upper)));
}

}  // namespace

bool SoundsLikeAnError(std::string_view line) {
  constexpr std::array<std::string_view, 8> kWords{"Error:",   "Exception:", "ERROR",     "FATAL",
                                                   "CRITICAL", "panic: ",    ": error: ", "Error "};
  constexpr std::array<std::string_view, 4> kBeginnings{"error", "Error", "fatal", "Fatal"};
  const auto is_in = [&](std::string_view word) { return line.find(word) != std::string_view::npos; };
  const auto begins = [&](std::string_view word) { return line.starts_with(word); };
  return IsException(line) || std::any_of(kWords.begin(), kWords.end(), is_in) ||
         std::any_of(kBeginnings.begin(), kBeginnings.end(), begins);
}

}  // namespace aimaster
