#include "core/time.h"

#include <cstdio>

namespace aimaster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using SystemTime = std::chrono::sys_time<milliseconds>;

}  // namespace

std::string FormatRfc3339(Wall time) {
  const SystemTime rounded{std::chrono::floor<milliseconds>(time.since_epoch)};
  const auto day = std::chrono::floor<std::chrono::days>(rounded);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss clock{rounded - day};
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return text;
}

Result<Wall> ParseRfc3339(std::string_view text) {
  const std::string copy(text.substr(0, 64));
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, millisecond = 0, end = 0;
  const int fields = std::sscanf(copy.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ%n", &year, &month, &day, &hour, &minute,
                                 &second, &millisecond, &end);
  const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (fields != 7 || static_cast<size_t>(end) != text.size() || !date.ok() || hour > 23 || minute > 59 || second > 60 ||
      hour < 0 || minute < 0 || second < 0 || millisecond < 0) {
    return Fail(ErrorKind::kUsage, "'" + copy + "' is not a time like 2026-01-31T23:59:59.123Z");
  }
  const SystemTime time = std::chrono::sys_days{date} + std::chrono::hours{hour} + std::chrono::minutes{minute} +
                          seconds{second} + milliseconds{millisecond};
  return Wall{time.time_since_epoch()};
}

std::string FormatDuration(Duration duration) {
  if (duration < Duration::zero()) return "-" + FormatDuration(-duration);
  const int64_t ms = ToMilliseconds(duration);
  char text[64];
  if (ms < 1000) {
    std::snprintf(text, sizeof text, "%lld ms", static_cast<long long>(ms));
  } else if (ms < 60'000) {
    std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(ms) / 1000);
  } else if (ms < 3'600'000) {
    std::snprintf(text, sizeof text, "%lld min %lld s", static_cast<long long>(ms / 60'000),
                  static_cast<long long>(ms / 1000 % 60));
  } else {
    std::snprintf(text, sizeof text, "%lld h %lld min", static_cast<long long>(ms / 3'600'000),
                  static_cast<long long>(ms / 60'000 % 60));
  }
  return text;
}

}  // namespace aimaster
