#include "agent/error_file.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "agent/limits.h"

namespace aimaster::agent {
namespace {

using nlohmann::json;

constexpr int64_t kSecondsMax = 100'000'000'000;  // some three thousand years: beyond this it is no time in seconds

int64_t SecondsToNs(double seconds) {
  if (!(seconds > 0) || seconds > static_cast<double>(kSecondsMax)) return 0;
  const double ns = seconds * 1e9;
  return ns < 9.2e18 ? static_cast<int64_t>(ns) : 0;
}

int64_t TimeNs(const json& extra) {
  if (!extra.is_object()) return 0;
  const auto time = extra.find("timestamp");
  if (time == extra.end()) return 0;
  if (time->is_number()) return SecondsToNs(time->get<double>());
  if (!time->is_string()) return 0;
  const auto& text = time->get_ref<const std::string&>();
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  return error == std::errc{} && end == text.data() + text.size() ? SecondsToNs(seconds) : 0;
}

// Length of the UTF-8 character at the start, 0 when it is none. Overlong forms and surrogates are none either.
size_t CharacterBytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const size_t length = first < 0x80                    ? 1
                        : first >= 0xC2 && first < 0xE0 ? 2
                        : (first & 0xF0) == 0xE0        ? 3
                        : first >= 0xF0 && first < 0xF5 ? 4
                                                        : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F) || (first == 0xF0 && byte(1) < 0x90) ||
      (first == 0xF4 && byte(1) > 0x8F)) {
    return 0;
  }
  return length;
}

}  // namespace

std::string SafeText(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const size_t length = CharacterBytes(text);
    if (safe.size() + std::max<size_t>(length, 1) > kErrorTextMaxBytes) break;
    if (length == 0) {
      safe += '?';
    } else {
      safe.append(text.substr(0, length));
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return safe;
}

std::optional<ErrorFile> ParseErrorFile(std::string_view text) {
  if (text.size() > kErrorFileMaxBytes) return std::nullopt;
  const json file = json::parse(text, nullptr, false);
  if (!file.is_object()) return std::nullopt;
  const auto message = file.find("message");
  if (message == file.end()) return std::nullopt;
  if (message->is_string()) return ErrorFile{SafeText(message->get_ref<const std::string&>()), 0};
  if (!message->is_object()) return std::nullopt;
  const auto inner = message->find("message");
  if (inner == message->end() || !inner->is_string()) return std::nullopt;
  const auto extra = message->find("extraInfo");
  return ErrorFile{SafeText(inner->get_ref<const std::string&>()), extra == message->end() ? 0 : TimeNs(*extra)};
}

}  // namespace aimaster::agent
