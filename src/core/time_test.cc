#include "core/time.h"

#include <gtest/gtest.h>

namespace aimaster {
namespace {

using namespace std::chrono_literals;

TEST(TimeTest, Rfc3339RoundTrips) {
  for (const char* text : {"1970-01-01T00:00:00.000Z", "2026-11-29T15:41:07.123Z", "2024-02-29T23:59:59.999Z"}) {
    const Result<Wall> time = ParseRfc3339(text);
    ASSERT_TRUE(time) << text;
    EXPECT_EQ(FormatRfc3339(*time), text);
  }
}

TEST(TimeTest, BadTimesAreRefused) {
  for (const char* text : {"", "2026-11-29", "2026-13-01T00:00:00.000Z", "2026-02-30T00:00:00.000Z",
                           "2026-11-29T25:00:00.000Z", "2026-11-29T15:41:07.123Zx"}) {
    EXPECT_FALSE(ParseRfc3339(text)) << text;
  }
}

TEST(TimeTest, DurationsReadLikeSpeech) {
  EXPECT_EQ(FormatDuration(350ms), "350 ms");
  EXPECT_EQ(FormatDuration(1234ms), "1.2 s");
  EXPECT_EQ(FormatDuration(250s), "4 min 10 s");
  EXPECT_EQ(FormatDuration(125min), "2 h 5 min");
}

}  // namespace
}  // namespace aimaster
