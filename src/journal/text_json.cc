#include "journal/text_json.h"

#include <cstdint>
#include <optional>

namespace aimaster {
namespace {

using nlohmann::json;

constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr const char* kHex = "hex";

// What may follow a first byte: how many bytes in all, and the range of the second one, which is where overlong forms,
// surrogates and numbers beyond Unicode show.
struct Sequence {
  size_t length = 0;
  uint8_t second_min = 0x80, second_max = 0xBF;
};

Sequence SequenceOf(uint8_t first) {
  if (first < 0x80) return {1};
  if (first < 0xC2) return {};
  if (first < 0xE0) return {2};
  if (first == 0xE0) return {3, 0xA0, 0xBF};
  if (first == 0xED) return {3, 0x80, 0x9F};
  if (first < 0xF0) return {3};
  if (first == 0xF0) return {4, 0x90, 0xBF};
  if (first < 0xF4) return {4};
  if (first == 0xF4) return {4, 0x80, 0x8F};
  return {};
}

std::optional<uint8_t> DigitOf(char c) {
  const size_t digit = kHexDigits.find(c);
  if (digit == std::string_view::npos) return std::nullopt;
  return static_cast<uint8_t>(digit);
}

}  // namespace

bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const Sequence sequence = SequenceOf(static_cast<uint8_t>(text[i]));
    if (sequence.length == 0 || sequence.length > text.size() - i) return false;
    for (size_t k = 1; k < sequence.length; ++k) {
      const auto byte = static_cast<uint8_t>(text[i + k]);
      if (byte < (k == 1 ? sequence.second_min : 0x80) || byte > (k == 1 ? sequence.second_max : 0xBF)) return false;
    }
    i += sequence.length;
  }
  return true;
}

json TextToJson(const std::string& text) {
  if (IsUtf8(text)) return text;
  std::string hex;
  hex.reserve(2 * text.size());
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    hex.push_back(kHexDigits[byte >> 4]);
    hex.push_back(kHexDigits[byte & 15]);
  }
  return {{kHex, std::move(hex)}};
}

std::string TextFromJson(const json& from, std::string& text) {
  if (from.is_string()) {
    text = from.get_ref<const std::string&>();
    return "";
  }
  const auto found = from.is_object() ? from.find(kHex) : from.end();
  if (!from.is_object() || found == from.end() || !found->is_string()) return "a string is expected";
  const auto& hex = found->get_ref<const std::string&>();
  if (hex.size() % 2 != 0) return "half a byte";
  text.clear();
  text.reserve(hex.size() / 2);
  for (size_t i = 0; i < hex.size(); i += 2) {
    const std::optional<uint8_t> high = DigitOf(hex[i]), low = DigitOf(hex[i + 1]);
    if (!high || !low) return "bytes are written with the digits 0-9 and a-f";
    text.push_back(static_cast<char>(*high << 4 | *low));
  }
  return "";
}

}  // namespace aimaster
