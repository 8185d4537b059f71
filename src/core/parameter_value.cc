#include "core/parameter_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/c4d_environment.h"
#include "core/quote.h"

namespace aimaster {
namespace {

using std::chrono::milliseconds;

constexpr size_t kListItemsMax = 1024;

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool SameWord(std::string_view a, std::string_view b) { return std::ranges::equal(a, b, {}, Lower, Lower); }

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n\v\f";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::vector<std::string_view> SplitAtCommas(std::string_view text) {
  std::vector<std::string_view> items;
  while (true) {
    const size_t comma = text.find(',');
    items.push_back(Trim(text.substr(0, comma)));
    if (comma == std::string_view::npos) return items;
    text.remove_prefix(comma + 1);
  }
}

// A sign is allowed, as in the languages that these strings are written from; from_chars takes no plus.
std::string_view WithoutPlus(std::string_view text) {
  const bool plus = text.size() > 1 && text[0] == '+' && text[1] != '-' && text[1] != '+';
  return plus ? text.substr(1) : text;
}

std::optional<int64_t> ParseInteger(std::string_view text) {
  text = WithoutPlus(text);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Decimal, to the last digit: 0.1 s must not become 99 ms on the way through a binary fraction.
std::optional<milliseconds> ParseMilliseconds(std::string_view text) {
  const size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  const std::string_view fraction = point == std::string_view::npos ? std::string_view() : text.substr(point + 1);
  const bool whole_digits = std::ranges::all_of(WithoutPlus(whole), [](char c) { return c >= '0' && c <= '9'; });
  const bool fraction_digits = std::ranges::all_of(fraction, [](char c) { return c >= '0' && c <= '9'; });
  if (!fraction_digits || (point != std::string_view::npos && fraction.empty())) return std::nullopt;
  const std::optional<int64_t> seconds = ParseInteger(whole.empty() ? "0" : whole);
  if (!whole_digits || !seconds || *seconds > kParameterSecondsMax.count()) return std::nullopt;
  int64_t count = *seconds;
  for (size_t i = 0; i < 3; ++i) count = count * 10 + (i < fraction.size() ? fraction[i] - '0' : 0);
  const bool finer = fraction.size() > 3 && fraction.substr(3).find_first_not_of('0') != std::string_view::npos;
  return finer ? std::nullopt : std::optional(milliseconds(count));
}

std::optional<double> ParseReal(std::string_view text) {
  text = WithoutPlus(text);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::general);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) return std::nullopt;
  return number + 0.0;  // -0 becomes 0
}

std::optional<int64_t> ParseBytes(std::string_view text) {
  int64_t unit = 1;
  if (!text.empty()) {
    const char suffix = Lower(text.back());
    unit = suffix == 'k' ? int64_t{1} << 10 : suffix == 'm' ? int64_t{1} << 20 : suffix == 'g' ? int64_t{1} << 30 : 1;
    if (unit != 1) text.remove_suffix(1);
  }
  const std::optional<int64_t> number = ParseInteger(text);
  if (!number || *number > std::numeric_limits<int64_t>::max() / unit ||
      *number < std::numeric_limits<int64_t>::min() / unit) {
    return std::nullopt;
  }
  return *number * unit;
}

std::string RealText(double number) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, number);
  return std::string(text, end);
}

std::string MillisecondsText(milliseconds time) {
  std::string text = std::to_string(time.count() / 1000);
  const int64_t rest = std::abs(time.count() % 1000);
  if (rest == 0) return text;
  std::string fraction = std::to_string(1000 + rest).substr(1);
  fraction.erase(fraction.find_last_not_of('0') + 1);
  return text + "." + fraction;
}

std::string Join(const auto& items, std::string_view separator) {
  std::string text;
  for (const auto& item : items) {
    if (!text.empty()) text += separator;
    text += item;
  }
  return text;
}

std::string RangeText(const Parameter& parameter, std::string_view noun, std::string_view maximum) {
  return std::string(noun) + " from " + std::to_string(parameter.minimum) + " to " + std::string(maximum);
}

std::string ExampleText(const Parameter& parameter) {
  return " (as in --" + std::string(parameter.name) + "=" + std::string(parameter.example) + ")";
}

bool IsName(std::string_view text) {
  const auto letter = [](char c) { return (Lower(c) >= 'a' && Lower(c) <= 'z') || c == '_'; };
  const auto letter_or_digit = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  return !text.empty() && letter(text.front()) && std::ranges::all_of(text, letter_or_digit);
}

// A sentence about the text, complete; empty where the row's own words say it all.
using Complaint = std::unexpected<std::string>;
using Parsed = std::expected<ParameterValue, std::string>;

Parsed ParseEnvironment(std::string_view text) {
  std::map<std::string, std::string> environment;
  for (const std::string_view item : text.empty() ? std::vector<std::string_view>() : SplitAtCommas(text)) {
    const size_t equals = item.find('=');
    const std::string_view key = Trim(item.substr(0, equals));
    if (equals == std::string_view::npos || !IsName(key)) {
      return Complaint(Quoted(item) + " is not NAME=VALUE, with a name of letters, digits and '_'");
    }
    const std::string value(Trim(item.substr(equals + 1)));
    if (!IsPrintable(value)) return Complaint("the value of " + Printable(key) + " is not printable text");
    const C4dSetting* setting = FindC4dSetting(key);
    if (setting != nullptr && !setting->accepts(value)) {
      return Complaint(std::string(key) + " can't be " + Quoted(value) + "; allowed: " + std::string(setting->allowed));
    }
    const auto [place, added] = environment.try_emplace(std::string(key), value);
    if (!added && place->second != value) {
      return Complaint(Printable(key) + " is given twice, as " + Quoted(place->second) + " and " + Quoted(value));
    }
  }
  return environment;
}

Parsed ParseList(std::string_view text) {
  constexpr std::string_view kOthers = "_-:./";
  const auto allowed = [&](char c) {
    return (Lower(c) >= 'a' && Lower(c) <= 'z') || (c >= '0' && c <= '9') || kOthers.find(c) != std::string_view::npos;
  };
  std::vector<std::string> items;
  for (const std::string_view item : SplitAtCommas(text)) {
    if (item.empty()) return Complaint("one of the items in " + Quoted(text) + " is empty");
    if (!std::ranges::all_of(item, allowed)) return Complaint(Quoted(item) + " is not an id");
    if (std::ranges::find(items, item) != items.end()) return Complaint(Quoted(item) + " is there twice");
    if (items.size() == kListItemsMax) return Complaint("it has more than " + std::to_string(kListItemsMax) + " items");
    items.emplace_back(item);
  }
  return items;
}

bool InRange(const Parameter& parameter, auto number) {
  using T = decltype(number);
  return (parameter.off && number == static_cast<T>(*parameter.off)) ||
         (number >= static_cast<T>(parameter.minimum) && number <= static_cast<T>(parameter.maximum));
}

Parsed Parse(const Parameter& parameter, std::string_view text) {
  const Complaint nothing_more{""};
  switch (parameter.type) {
    case ParameterType::kBool:
      if (SameWord(text, "true")) return true;
      if (SameWord(text, "false")) return false;
      return nothing_more;
    case ParameterType::kChoice:
      for (size_t i = 0; i < parameter.choices.size(); ++i) {
        if (SameWord(text, parameter.choices[i])) return Choice(i);
      }
      return nothing_more;
    case ParameterType::kInteger:
    case ParameterType::kBytes: {
      const auto number = parameter.type == ParameterType::kBytes ? ParseBytes(text) : ParseInteger(text);
      if (number && InRange(parameter, *number)) return *number;
      return nothing_more;
    }
    case ParameterType::kSeconds: {
      const std::optional<milliseconds> time = ParseMilliseconds(text);
      const bool whole = parameter.resolution == milliseconds(1) || text.find('.') == std::string_view::npos;
      if (time && whole && InRange(parameter, time->count())) return *time;
      return nothing_more;
    }
    case ParameterType::kReal: {
      const std::optional<double> number = ParseReal(text);
      if (number && InRange(parameter, *number)) return *number;
      return nothing_more;
    }
    case ParameterType::kEnvironment:
      return ParseEnvironment(text);
    case ParameterType::kList:
      return ParseList(text);
    case ParameterType::kAny:
      return std::vector<std::string>{};
  }
  return nothing_more;
}

}  // namespace

std::string AllowedText(const Parameter& parameter) {
  switch (parameter.type) {
    case ParameterType::kBool:
      return "True, False";
    case ParameterType::kChoice:
      return Join(parameter.choices, ", ");
    case ParameterType::kInteger:
      return RangeText(parameter, "a whole number", std::to_string(parameter.maximum));
    case ParameterType::kBytes:
      return "a whole number of bytes, or of K, M or G as in 64M";
    case ParameterType::kSeconds: {
      const bool whole = parameter.resolution == std::chrono::seconds(1);
      return std::string(whole ? "whole seconds" : "seconds") + " from " +
             MillisecondsText(milliseconds(parameter.minimum)) + " to " +
             MillisecondsText(milliseconds(parameter.maximum)) + (whole ? "" : ", at most three decimals") +
             ", without a unit";
    }
    case ParameterType::kReal:
      return (parameter.off ? std::to_string(*parameter.off) + ", or " : std::string()) +
             RangeText(parameter, "a number", std::to_string(parameter.maximum));
    case ParameterType::kEnvironment:
      return "NAME=VALUE,NAME=VALUE";
    case ParameterType::kList:
      return "ids separated by commas";
    case ParameterType::kAny:
      return "anything";
  }
  return "";
}

std::string MissingValueText(const Parameter& parameter, std::string_view written_name) {
  return "--" + std::string(written_name) + " has no value; allowed: " + AllowedText(parameter) +
         ExampleText(parameter);
}

Result<ParameterValue> ParseValue(const Parameter& parameter, std::string_view written_name, std::string_view text) {
  const std::string_view trimmed = Trim(text);
  const bool may_be_empty = parameter.type == ParameterType::kEnvironment || parameter.type == ParameterType::kAny;
  if (trimmed.empty() && !may_be_empty) return Fail(ErrorKind::kUsage, MissingValueText(parameter, written_name));
  Parsed value = Parse(parameter, trimmed);
  if (value) return *std::move(value);
  std::string message = "--" + std::string(written_name);
  message += value.error().empty() ? " can't be " + Quoted(trimmed) + "; allowed: " + AllowedText(parameter)
                                   : ": " + value.error();
  message += ExampleText(parameter);
  if (trimmed == "-1" && !parameter.refusal.empty()) message += "; " + std::string(parameter.refusal);
  return Fail(ErrorKind::kUsage, std::move(message));
}

std::string ValueText(const Parameter& parameter, const ParameterValue& value) {
  switch (parameter.type) {
    case ParameterType::kBool:
      return std::get<bool>(value) ? "True" : "False";
    case ParameterType::kChoice: {
      const auto index = static_cast<size_t>(std::get<Choice>(value));
      return index < parameter.choices.size() ? std::string(parameter.choices[index]) : std::string("unknown");
    }
    case ParameterType::kInteger:
    case ParameterType::kBytes:
      return std::to_string(std::get<int64_t>(value));
    case ParameterType::kSeconds:
      return MillisecondsText(std::get<milliseconds>(value));
    case ParameterType::kReal:
      return RealText(std::get<double>(value));
    case ParameterType::kEnvironment: {
      std::vector<std::string> items;
      for (const auto& [key, item] : std::get<std::map<std::string, std::string>>(value)) {
        items.push_back(key + "=" + item);
      }
      return Join(items, ",");
    }
    case ParameterType::kList:
      return Join(std::get<std::vector<std::string>>(value), ",");
    case ParameterType::kAny:
      return "";
  }
  return "";
}

}  // namespace aimaster
