// Time: two clocks, never mixed. Durations and deadlines use the monotonic clock; people read the wall clock. A moment
// that is stored carries both, since after a reboot the monotonic clock means nothing and after a clock step the wall
// clock lies.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>

#include "core/error.h"

namespace aimaster {

using Duration = std::chrono::nanoseconds;

// A point on the monotonic clock, as time since some origin that all processes of one boot share.
struct Monotonic {
  Duration since_origin{};
  auto operator<=>(const Monotonic&) const = default;
};
inline Monotonic operator+(Monotonic t, Duration d) { return {t.since_origin + d}; }
inline Duration operator-(Monotonic a, Monotonic b) { return a.since_origin - b.since_origin; }

// A point on the wall clock, as time since 1970-01-01 UTC.
struct Wall {
  Duration since_epoch{};
  auto operator<=>(const Wall&) const = default;
};
inline Wall operator+(Wall t, Duration d) { return {t.since_epoch + d}; }
inline Duration operator-(Wall a, Wall b) { return a.since_epoch - b.since_epoch; }

struct Moment {
  Monotonic monotonic;
  Wall wall;
  bool operator==(const Moment&) const = default;
};

// "2026-01-31T23:59:59.123Z": RFC 3339, UTC, milliseconds.
std::string FormatRfc3339(Wall time);
Result<Wall> ParseRfc3339(std::string_view text);

// "350 ms", "1.2 s", "4 min 10 s", "2 h 5 min": for people.
std::string FormatDuration(Duration duration);

inline int64_t ToMilliseconds(Duration d) { return std::chrono::duration_cast<std::chrono::milliseconds>(d).count(); }

}  // namespace aimaster
