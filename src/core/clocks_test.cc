#include "core/clocks.h"

#include <gtest/gtest.h>

namespace aimaster {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// A machine whose clocks both advance by `step` with every reading, and which takes the processor away for `pause`
// after the readings named.
struct BusyMachine {
  Duration time{};
  Duration step = microseconds(1);
  int readings = 0;
  int pause_after_first = 0;  // so many readings from the first one on
  Duration pause = milliseconds(300);

  Duration Read() {
    const Duration now = time;
    time += step;
    if (readings++ < pause_after_first) time += pause;
    return now;
  }
  Moment Both() {
    return ReadTogether([&] { return Monotonic{Read()}; }, [&] { return Wall{milliseconds(5000) + Read()}; });
  }
};

TEST(ClocksTest, BothAreReadAtOneTime) {
  BusyMachine machine;
  const Moment now = machine.Both();
  EXPECT_EQ(now.wall.since_epoch - now.monotonic.since_origin, milliseconds(5000) + microseconds(1));
  EXPECT_EQ(machine.readings, 3);
}

TEST(ClocksTest, WhoLosesTheProcessorBetweenTheReadingsReadsAgain) {
  BusyMachine machine{.pause_after_first = 4};
  const Moment now = machine.Both();
  EXPECT_LE(now.wall.since_epoch - now.monotonic.since_origin, milliseconds(5000) + kReadTogetherWithin);
}

TEST(ClocksTest, WhoAlwaysLosesItEndsAllTheSame) {
  BusyMachine machine{.pause_after_first = 1'000'000};
  const Moment now = machine.Both();
  EXPECT_LE(now.wall.since_epoch - now.monotonic.since_origin, milliseconds(5000 + 301));
  EXPECT_EQ(machine.readings, 1 + 2 * kReadTogetherTries);
}

}  // namespace
}  // namespace aimaster
