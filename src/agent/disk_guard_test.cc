#include "agent/disk_guard.h"

#include <gtest/gtest.h>

namespace aimaster::agent {
namespace {

constexpr uint64_t kMiB = 1 << 20;

TEST(DiskGuardTest, TheWatermarkFitsTheDisk) {
  EXPECT_EQ(Watermark({.total_bytes = 1 * kMiB}), 1 * kMiB);
  EXPECT_EQ(Watermark({.total_bytes = 500 * kMiB}), 10 * kMiB);
  EXPECT_EQ(Watermark({.total_bytes = 10'000'000 * kMiB}), 64 * kMiB);
}

TEST(DiskGuardTest, ScarceBeginsAtTheWatermarkAndEndsAtTwice) {
  const auto judge = [](uint64_t free_mib, DiskState before) {
    return Judge({.total_bytes = 5000 * kMiB, .free_bytes = free_mib * kMiB}, before);
  };
  EXPECT_EQ(judge(4000, DiskState::kRoomy), DiskState::kRoomy);
  EXPECT_EQ(judge(300, DiskState::kRoomy), DiskState::kLooking);
  EXPECT_EQ(judge(63, DiskState::kRoomy), DiskState::kScarce);
  EXPECT_EQ(judge(100, DiskState::kLooking), DiskState::kLooking);
  EXPECT_EQ(judge(100, DiskState::kScarce), DiskState::kScarce);
  EXPECT_EQ(judge(130, DiskState::kScarce), DiskState::kLooking);
}

TEST(DiskGuardTest, WhoPrintsFastNeedsMoreRoom) {
  EXPECT_EQ(Watermark({.total_bytes = 24 * kMiB, .free_bytes = 0, .bytes_per_second = 4 * kMiB}), 4 * kMiB);
  EXPECT_EQ(Watermark({.total_bytes = 24 * kMiB, .free_bytes = 0, .bytes_per_second = 800 * kMiB}), 6 * kMiB);
}

TEST(DiskGuardTest, AFileSystemThatDoesNotSayIsRoomy) {
  DiskGuard guard("/no/such/place/reserve");
  guard.Open();
  EXPECT_EQ(guard.Look("/no/such/place", 1), DiskState::kRoomy);
}

}  // namespace
}  // namespace aimaster::agent
