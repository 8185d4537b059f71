#include "core/c4d_environment.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

#include "core/parameter_table.h"
#include "core/quote.h"

namespace aimaster {
namespace {

constexpr int64_t kMicrosecondsFrom = 1'000'000;
constexpr uint32_t kHangTimesMax = 1'000'000;

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

bool IsTime(std::string_view value) { return ParseC4dTime(value).has_value(); }

bool IsTimes(std::string_view value) { return ParseC4dTimes(value).has_value(); }

bool IsLevel(std::string_view value) {
  constexpr std::array<std::string_view, 6> kLevels = {"trace", "debug", "info", "warning", "error", "fatal"};
  return std::ranges::find(kLevels, Lower(value)) != kLevels.end();
}

bool IsSwitch(std::string_view value) {
  constexpr std::array<std::string_view, 4> kSwitches = {"true", "false", "1", "0"};
  return std::ranges::find(kSwitches, Lower(value)) != kSwitches.end();
}

constexpr std::string_view kTimeAllowed =
    "a time such as 10, 10s, 500ms or 2min; a bare number from 1000000 up counts microseconds, a smaller one seconds";

constexpr std::string_view kTimesAllowed = "a whole number from 1 to 1000000";

constexpr std::array<C4dSetting, 5> kSettings = {{
    {"C4D_HANG_TIMEOUT", kTimeAllowed, "10s", "How long one communication may stand still until it is a warning.",
     IsTime},
    {"C4D_HANG_TIMES", kTimesAllowed, "18", "After this many times C4D_HANG_TIMEOUT the warning becomes an error.",
     IsTimes},
    {"C4D_CONN_BW_CHECK_PERIOD", kTimeAllowed, "10s",
     "How often slowness is judged: twice in it; slow is who was so three times of the last five.", IsTime},
    {"C4D_RUNTIME_LOG_LEVEL", "Trace, Debug, Info, Warning, Error, Fatal", "Info",
     "How much the collector inside the ranks logs.", IsLevel},
    {"C4D_ENABLE_STATS_OUTPUT", "True, False, 1, 0", "False", "Whether communication statistics are written out.",
     IsSwitch},
}};

}  // namespace

std::span<const C4dSetting> C4dSettings() { return kSettings; }

const C4dSetting* FindC4dSetting(std::string_view name) {
  const auto it = std::ranges::find(kSettings, name, &C4dSetting::name);
  return it == kSettings.end() ? nullptr : &*it;
}

std::string_view C4dSettingIn(const std::map<std::string, std::string>& settings, std::string_view name) {
  const auto found = settings.find(std::string(name));
  return found == settings.end() ? FindC4dSetting(name)->default_text : std::string_view(found->second);
}

Result<Duration> ParseC4dTime(std::string_view text) {
  using namespace std::chrono_literals;
  constexpr std::array<std::pair<std::string_view, Duration>, 8> kUnits = {
      {{"ns", 1ns}, {"us", 1us}, {"ms", 1ms}, {"s", 1s}, {"sec", 1s}, {"m", 1min}, {"min", 1min}, {"h", 1h}}};
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string unit = Lower(std::string_view(end, text.data() + text.size()));
  Duration one = unit.empty() ? (number >= kMicrosecondsFrom ? Duration(1us) : Duration(1s)) : Duration::zero();
  for (const auto& [name, duration] : kUnits) {
    if (unit == name) one = duration;
  }
  const bool known = error == std::errc() && one > Duration::zero();
  if (!known || number < 1 || number > Duration(kParameterSecondsMax) / one) {
    return Fail(ErrorKind::kUsage, Quoted(text) + " is not " + std::string(kTimeAllowed));
  }
  return number * one;
}

Result<uint32_t> ParseC4dTimes(std::string_view text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (is_number && number >= 1 && number <= kHangTimesMax) return number;
  return Fail(ErrorKind::kUsage, Quoted(text) + " is not " + std::string(kTimesAllowed));
}

}  // namespace aimaster
