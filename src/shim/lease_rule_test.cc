#include "shim/lease_rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "shim/lease_format.h"

namespace aimaster {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// A watcher that looks regularly from second 0 on.
struct Watcher {
  int64_t timeout = 0;
  int64_t patience = timeout;
  int64_t now = 1;
  LeaseWatch watch = BeginLeaseWatch(now);

  int64_t pace() const { return LeasePaceNs(timeout); }

  // Looks until `end`; the moment at which the lease was found expired, if it was.
  std::optional<int64_t> LookUntil(int64_t end, int64_t renewed_every = 0) {
    int64_t next_renewal = now;
    for (; now <= end; now += pace()) {
      if (renewed_every != 0 && now >= next_renewal) {
        LeaseRenewed(&watch, now);
        next_renewal = now + renewed_every;
      }
      if (LeaseHasExpired(&watch, now, patience, pace())) return now;
    }
    return std::nullopt;
  }
};

TEST(LeaseRule, AMasterThatIsThereIsNeverMissed) {
  for (const int64_t timeout : {1 * kSecond, 600 * kSecond}) {
    Watcher watcher{.timeout = timeout};
    EXPECT_EQ(watcher.LookUntil(100 * timeout, LeasePaceNs(timeout)), std::nullopt);
  }
}

TEST(LeaseRule, ExpiresSoonAfterTheTimeoutAndNeverBefore) {
  for (const int64_t timeout : {1 * kSecond, 7 * kSecond, 600 * kSecond, 7 * 7 * 86400 * kSecond}) {
    Watcher watcher{.timeout = timeout};
    const auto expired = watcher.LookUntil(2 * timeout);
    ASSERT_TRUE(expired);
    EXPECT_GE(*expired, timeout);
    EXPECT_LE(*expired, timeout + 4 * watcher.pace());
  }
}

TEST(LeaseRule, AThawIsNoReason) {
  Watcher watcher{.timeout = 10 * kSecond};
  ASSERT_EQ(watcher.LookUntil(5 * kSecond, kSecond), std::nullopt);
  watcher.now += 3600 * kSecond;
  const int64_t thawed = watcher.now;
  EXPECT_EQ(watcher.LookUntil(thawed + 9 * kSecond), std::nullopt) << "the others need time to wake up too";
  const auto expired = watcher.LookUntil(thawed + 60 * kSecond);
  ASSERT_TRUE(expired) << "but if nobody wakes up, it ends";
  EXPECT_GE(*expired, thawed + 10 * kSecond);
}

TEST(LeaseRule, AFreezeTooShortToBeNoticedDoesNotKill) {
  for (const int64_t timeout : {1 * kSecond, 4 * kSecond, 600 * kSecond}) {
    Watcher watcher{.timeout = timeout};
    ASSERT_EQ(watcher.LookUntil(timeout, watcher.pace()), std::nullopt);
    watcher.now += std::min<int64_t>(kLeaseGapLooks * watcher.pace(), timeout / 2) - 1;
    EXPECT_EQ(watcher.LookUntil(watcher.now + watcher.pace()), std::nullopt);
    EXPECT_EQ(watcher.LookUntil(watcher.now + 5 * timeout, watcher.pace()), std::nullopt);
  }
}

TEST(LeaseRule, TheAgentGoesFirst) {
  for (const int64_t timeout : {1 * kSecond, 20 * kSecond, 600 * kSecond}) {
    Watcher agent{.timeout = timeout};
    Watcher shim{.timeout = timeout, .patience = timeout + LeaseMarginNs(timeout)};
    EXPECT_LT(*agent.LookUntil(3 * timeout), *shim.LookUntil(3 * timeout));
  }
}

TEST(LeaseRule, ARenewalOfThePastChangesNothing) {
  LeaseWatch watch = BeginLeaseWatch(50);
  LeaseRenewed(&watch, 20);
  EXPECT_EQ(watch.since_ns, 50);
}

TEST(Lease, IsBelievedWholeAndInItsOwnBootOnly) {
  const Lease good = MakeLease("boot", 7, 100, 5);
  EXPECT_TRUE(IsGoodLease(&good, "boot", 100));
  EXPECT_FALSE(IsGoodLease(&good, "another boot", 100));
  EXPECT_FALSE(IsGoodLease(&good, "boot", 99)) << "renewed in the future";
  for (size_t i = 0; i < sizeof good; ++i) {
    Lease bad = good;
    reinterpret_cast<unsigned char*>(&bad)[i] ^= 1;
    EXPECT_FALSE(IsGoodLease(&bad, "boot", 1000)) << "byte " << i;
  }
  const Lease empty{};
  EXPECT_FALSE(IsGoodLease(&empty, "boot", 100));
}

}  // namespace
}  // namespace aimaster
