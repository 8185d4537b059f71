// How long all may be silent, and whose word counts for that.
#include "detect/log_silence.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace aimaster {
namespace {

using namespace std::chrono_literals;

constexpr Monotonic AtSecond(Duration time) { return {time}; }

// A job whose last rank was executed at second 100, with an interval of 10 s, and of which all have told up to now.
SilenceSignals Up(Monotonic heard) {
  return {.interval = 10s,
          .counts_from = AtSecond(100s),
          .last_output = std::nullopt,
          .last_progress = std::nullopt,
          .all_heard = heard};
}

TEST(LogSilenceTest, AJobThatPrintsIsNotSilent) {
  SilenceSignals job = Up(AtSecond(130s));
  job.last_output = AtSecond(125s);
  const SilenceVerdict verdict = JudgeSilence(job, AtSecond(130s));
  EXPECT_EQ(verdict.silence, Silence::kNotYet);
  EXPECT_EQ(verdict.since, AtSecond(125s));
  EXPECT_EQ(verdict.due, AtSecond(135s));
}

TEST(LogSilenceTest, WhoNeverPrintsHangsToo) {
  EXPECT_EQ(JudgeSilence(Up(AtSecond(110s)), AtSecond(110s - 1ns)).silence, Silence::kNotYet);
  EXPECT_EQ(JudgeSilence(Up(AtSecond(110s)), AtSecond(110s)).silence, Silence::kHang)
      << "it counts from the last rank's exec";
}

TEST(LogSilenceTest, WhatWasPrintedBeforeDoesNotCount) {
  SilenceSignals job = Up(AtSecond(110s));
  job.last_output = AtSecond(99s);  // of the round before
  EXPECT_EQ(JudgeSilence(job, AtSecond(109s)).silence, Silence::kNotYet);
}

TEST(LogSilenceTest, AsLongAsANodeHasNotToldNothingIsConcluded) {
  SilenceSignals job = Up(AtSecond(109s));
  EXPECT_EQ(JudgeSilence(job, AtSecond(111s)).silence, Silence::kUnsure)
      << "what it told is older than the interval's end";
  EXPECT_EQ(JudgeSilence(job, AtSecond(111s)).due, AtSecond(110s));
  job.all_heard.reset();
  EXPECT_EQ(JudgeSilence(job, AtSecond(1000s)).silence, Silence::kUnsure) << "a node that doesn't report is no silence";
}

TEST(LogSilenceTest, StepsThatGoOnAreTold) {
  SilenceSignals job = Up(AtSecond(112s));
  job.last_progress = AtSecond(108s);
  const SilenceVerdict verdict = JudgeSilence(job, AtSecond(112s));
  EXPECT_EQ(verdict.silence, Silence::kHang) << "the plain rule";
  EXPECT_TRUE(verdict.is_advancing);
  job.last_progress = AtSecond(101s);
  EXPECT_FALSE(JudgeSilence(job, AtSecond(112s)).is_advancing) << "they have stood still for the interval";
}

TEST(LogSilenceTest, WhereProgressIsRequiredItHasToStandStillAsWell) {
  SilenceSignals job = Up(AtSecond(112s));
  job.requires_progress = true;
  job.last_progress = AtSecond(108s);
  EXPECT_EQ(JudgeSilence(job, AtSecond(112s)).silence, Silence::kAdvancing);
  EXPECT_EQ(JudgeSilence(job, AtSecond(112s)).due, AtSecond(118s));
  EXPECT_EQ(JudgeSilence(job, AtSecond(118s)).silence, Silence::kUnsure) << "a step may have been told since";
  job.all_heard = AtSecond(118s);
  EXPECT_EQ(JudgeSilence(job, AtSecond(118s)).silence, Silence::kHang);
  job.last_progress.reset();
  EXPECT_EQ(JudgeSilence(job, AtSecond(118s)).silence, Silence::kHang) << "who tells no steps is judged by the output";
}

std::optional<Monotonic> AnyTime() {
  const int64_t ms = *rc::gen::inRange<int64_t>(-1, 60'000);
  return ms < 0 ? std::nullopt : std::optional(AtSecond(std::chrono::milliseconds(ms)));
}

SilenceSignals AnySignals() {
  return {.interval = std::chrono::milliseconds(*rc::gen::inRange(1, 20'000)),
          .counts_from = AtSecond(std::chrono::milliseconds(*rc::gen::inRange(0, 30'000))),
          .last_output = AnyTime(),
          .last_progress = AnyTime(),
          .all_heard = AnyTime(),
          .requires_progress = *rc::gen::arbitrary<bool>()};
}

// Never a false alarm, whatever the signals.
RC_GTEST_PROP(LogSilencePropertyTest, AHangIsNeverShorterThanTheInterval, ()) {
  const SilenceSignals signals = AnySignals();
  const Monotonic now = AtSecond(std::chrono::milliseconds(*rc::gen::inRange(0, 90'000)));
  if (JudgeSilence(signals, now).silence != Silence::kHang) return;
  RC_ASSERT(now - signals.counts_from >= signals.interval);
  RC_ASSERT(!signals.last_output || now - *signals.last_output >= signals.interval);
  RC_ASSERT(!signals.requires_progress || !signals.last_progress || now - *signals.last_progress >= signals.interval);
  RC_ASSERT(signals.all_heard.has_value());
  RC_ASSERT(!signals.last_output || *signals.all_heard - *signals.last_output >= signals.interval);
}

// And never a hang that is not found: at `due` the answer changes, and with all heard it is the last one.
RC_GTEST_PROP(LogSilencePropertyTest, WhenItIsDueAndAllAreHeardThereIsAnAnswer, ()) {
  SilenceSignals signals = AnySignals();
  const Monotonic now = AtSecond(std::chrono::milliseconds(*rc::gen::inRange(0, 90'000)));
  const SilenceVerdict first = JudgeSilence(signals, now);
  if (first.silence == Silence::kHang) return;
  const Monotonic due = std::max(first.due, now);
  signals.all_heard = due;
  const SilenceVerdict then = JudgeSilence(signals, due);
  RC_ASSERT(then.silence != Silence::kNotYet);
  RC_ASSERT(then.silence != Silence::kUnsure);
  if (then.silence != Silence::kAdvancing) return;
  signals.all_heard = then.due;
  RC_ASSERT(JudgeSilence(signals, then.due).silence == Silence::kHang);
}

// Who keeps printing, or has told less, is never worse off.
RC_GTEST_PROP(LogSilencePropertyTest, OutputOnlyPutsItOff, ()) {
  SilenceSignals signals = AnySignals();
  const Monotonic now = AtSecond(std::chrono::milliseconds(*rc::gen::inRange(0, 90'000)));
  const bool hangs = JudgeSilence(signals, now).silence == Silence::kHang;
  const std::optional<Monotonic> more = AnyTime();
  signals.last_output = std::max(signals.last_output, more);
  RC_ASSERT(hangs || JudgeSilence(signals, now).silence != Silence::kHang);
}

}  // namespace
}  // namespace aimaster
