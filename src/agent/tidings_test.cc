// What ranks have told: the newest counts, whatever the order in which it is read.
#include "agent/tidings.h"

#include <gtest/gtest.h>

#include <cmath>

#include "agent/limits.h"

namespace aimaster::agent {
namespace {

constexpr Tidings::RankKey kRank0{{0, 0}, 0}, kRank1{{1, 0}, 0};

Monotonic At(Duration since_origin) { return {since_origin}; }
HangSetting Setting(int64_t interval_ms, uint64_t set_at_ns, uint32_t round = 0) {
  return {.interval_ms = interval_ms, .set_at_ns = set_at_ns, .round = round};
}

TEST(TidingsTest, OfEachRankTheLastStepAndCheckpointCount) {
  Tidings tidings;
  EXPECT_FALSE(tidings.Overall());
  tidings.SetStep(kRank0, 5, 0.5, At(1s));
  tidings.SetStep(kRank1, 7, std::nullopt, At(2s));
  tidings.SetCheckpoint(kRank0, 4, At(3s));
  EXPECT_EQ(tidings.StepOf(kRank0), 5u);
  EXPECT_EQ(tidings.StepOf(kRank1), 7u);
  const auto all = tidings.Overall();
  ASSERT_TRUE(all);
  EXPECT_EQ(all->step, 7u);
  EXPECT_EQ(all->advanced, At(3s)) << "a checkpoint is a sign of life";
  EXPECT_EQ(all->checkpoint_step, 4u);
  EXPECT_EQ(all->loss, 0.5);
}

TEST(TidingsTest, TheSameStepAgainIsNoAdvance) {
  Tidings tidings;
  tidings.SetStep(kRank0, 5, std::nullopt, At(1s));
  tidings.SetStep(kRank0, 5, std::nullopt, At(2s));
  EXPECT_EQ(tidings.Overall()->advanced, At(1s));
  tidings.SetStep(kRank0, 6, std::nullopt, At(3s));
  EXPECT_EQ(tidings.Overall()->advanced, At(3s));
}

TEST(TidingsTest, TheNewestLossCountsAlsoWhereItIsNoNumber) {
  Tidings tidings;
  tidings.SetStep(kRank0, 5, 0.5, At(1s));
  tidings.SetStep(kRank1, 5, std::nan(""), At(2s));
  tidings.SetStep(kRank0, 6, std::nullopt, At(3s));
  EXPECT_TRUE(std::isnan(*tidings.Overall()->loss));
}

TEST(TidingsTest, AnAttemptThatEndedIsForgotten) {
  Tidings tidings;
  tidings.SetStep(kRank0, 5, std::nullopt, At(1s));
  tidings.Forget(kRank0.first);
  EXPECT_FALSE(tidings.Overall());
  EXPECT_EQ(tidings.StepOf(kRank0), std::nullopt);
}

TEST(TidingsTest, OfTwoIntervalsTheOneSetLaterCountsWhicheverIsReadFirst) {
  Tidings tidings;
  EXPECT_TRUE(tidings.SetHang(Setting(180'000, 20)));
  EXPECT_FALSE(tidings.SetHang(Setting(kHangIntervalOffMs, 10)));
  EXPECT_EQ(tidings.hang(), Setting(180'000, 20));
  EXPECT_TRUE(tidings.SetHang(Setting(kHangIntervalOwnMs, 20))) << "of two at one moment, the one that came last";
  EXPECT_EQ(tidings.hang(), Setting(kHangIntervalOwnMs, 20));
}

TEST(TidingsTest, TwoRanksThatEnterAndLeaveInAnyOrderEndAtTheJobsOwn) {
  // A and B each enter a section and leave it; whoever leaves says "the job's own".
  const HangSetting enter_a = Setting(60'000, 1), enter_b = Setting(kHangIntervalOffMs, 2);
  for (const bool a_first : {true, false}) {
    Tidings tidings;
    tidings.SetHang(enter_a);
    tidings.SetHang(enter_b);
    tidings.SetHang(Setting(kHangIntervalOwnMs, a_first ? 3 : 4));
    tidings.SetHang(Setting(kHangIntervalOwnMs, a_first ? 4 : 3));
    EXPECT_EQ(tidings.hang()->interval_ms, kHangIntervalOwnMs);
  }
}

TEST(TidingsTest, ANewRoundStartsFromTheFlagAgain) {
  Tidings tidings;
  tidings.SetHang(Setting(kHangIntervalOffMs, 100, 0));
  EXPECT_FALSE(tidings.BeginRound(0)) << "it is the one that runs";
  EXPECT_TRUE(tidings.BeginRound(1));
  EXPECT_FALSE(tidings.hang());
  EXPECT_TRUE(tidings.SetHang(Setting(5'000, 1, 1)));
  EXPECT_FALSE(tidings.SetHang(Setting(9'000, 200, 0))) << "said in a round that is over";
}

TEST(TidingsTest, ARankSaysSomeThingsAtOnceAndThenOneASecond) {
  Tidings tidings;
  for (uint32_t i = 0; i < kMessagesAtOnce; ++i) EXPECT_TRUE(tidings.MaySpeak(kRank0, At(100s)));
  EXPECT_FALSE(tidings.MaySpeak(kRank0, At(100s)));
  EXPECT_TRUE(tidings.MaySpeak(kRank1, At(100s))) << "another rank has its own";
  EXPECT_TRUE(tidings.MaySpeak(kRank0, At(101s)));
  EXPECT_FALSE(tidings.MaySpeak(kRank0, At(101s)));
}

TEST(TidingsTest, AfterTheFirstHundredARankSaysOneThingInTenSeconds) {
  Tidings tidings;
  uint32_t said = 0;
  for (auto at = 100s; at < 100s + 1000s; at += 1s) said += tidings.MaySpeak(kRank0, At(at)) ? 1 : 0;
  EXPECT_EQ(said, kMessagesSoon + 90);
  EXPECT_FALSE(tidings.MaySpeak(kRank0, At(1099s)));
  EXPECT_TRUE(tidings.MaySpeak(kRank0, At(1200s)));
  EXPECT_FALSE(tidings.MaySpeak(kRank0, At(1209s))) << "who was quiet for long has no more than one either";
  EXPECT_TRUE(tidings.MaySpeak(kRank0, At(1210s)));
  EXPECT_TRUE(tidings.MaySpeak(kRank1, At(1210s)));
}

TEST(TidingsTest, TheCallersClockIsBelievedWhereItCanBeTheSame) {
  const Monotonic now = At(10'000s);
  const auto ns = [](Duration d) { return static_cast<uint64_t>(d.count()); };
  EXPECT_EQ(SaidAtNs(ns(9'999s), now), ns(9'999s));
  EXPECT_EQ(SaidAtNs(std::nullopt, now), ns(10'000s));
  EXPECT_EQ(SaidAtNs(ns(10'001s), now), ns(10'000s)) << "the future";
  EXPECT_EQ(SaidAtNs(ns(1s), now), ns(10'000s)) << "the clock of another time namespace";
}

}  // namespace
}  // namespace aimaster::agent
