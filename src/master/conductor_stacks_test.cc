// A capture of call stacks, from the wish to the file.
#include "master/conductor_bench.h"
#include "stacks/document.h"

namespace aimaster {
namespace {

v1::Report Stacks(uint32_t capture) {
  stacks::CaptureBuilder builder;
  for (uint32_t rank : {0u, 1u}) {
    const stacks::Thread thread{.name = "MainThread", .frames = {{.function = rank == 1 ? "load" : "step"}}};
    builder.Add({.node = "n", .instance = "w", .rank = rank}, std::vector{thread});
  }
  v1::Report report;
  report.mutable_stacks_captured()->set_capture(capture);
  report.mutable_stacks_captured()->set_document(stacks::FormatDocument(builder.Take()));
  return report;
}

// What is to be stored, among all that is to be done.
std::vector<stacks::Capture> ToStore(Bench& bench) {
  std::vector<stacks::Capture> found;
  for (const Effect& effect : bench.conductor.TakeEffects()) {
    if (const auto* store = std::get_if<StoreStacks>(&effect)) found.push_back(store->capture);
  }
  return found;
}

TEST(ConductorStacksTest, AreOrderedOnceTheWishIsDurableAndStoredOnceAllHaveAnswered) {
  Bench bench;
  bench.RunToStart();
  bench.Heard(kFirst);
  EXPECT_EQ(bench.conductor.RequestStacks(bench.now, "a test"), "");
  EXPECT_TRUE(bench.Heard(kFirst).empty()) << "it is not durable yet";
  bench.Settle();
  ASSERT_EQ(CountOf(bench.Heard(kFirst), v1::Command::kCaptureStacks), 1u);

  bench.Report(kFirst, 2, Stacks(1));
  const std::vector<stacks::Capture> stored = ToStore(bench);
  ASSERT_EQ(stored.size(), 1u);
  EXPECT_EQ(stored[0].number, 1u);
  EXPECT_EQ(stored[0].processes.size(), 2u);
  bench.conductor.OnStacksStored(bench.now, SummarizeStacks(stored[0], "stacks/1.json", {}));
  bench.Settle();
  EXPECT_EQ(bench.conductor.engine().job().stacks.path, "stacks/1.json");
  EXPECT_FALSE(bench.conductor.engine().job().stacks.is_under_way);
}

TEST(ConductorStacksTest, ANodeThatDoesNotAnswerIsWaitedForUntilItsShareOfTheTimeIsOver) {
  Bench bench;
  bench.RunToStart();
  bench.conductor.RequestStacks(bench.now, "a test");
  bench.Settle();
  ToStore(bench);
  const auto due = bench.conductor.NextDeadline();
  ASSERT_TRUE(due);
  EXPECT_LT(*due, bench.now.monotonic + 30s);
  bench.now.monotonic = *due;
  bench.conductor.OnTime(bench.now);
  const std::vector<stacks::Capture> stored = ToStore(bench);
  ASSERT_EQ(stored.size(), 1u);
  EXPECT_EQ(SummarizeStacks(stored[0], "", {}).ranks_answered, 0u);
  EXPECT_EQ(SummarizeStacks(stored[0], "", {}).ranks_asked, 2u);
}

TEST(ConductorStacksTest, AConnectionThatComesMeanwhileIsToldToo) {
  Bench bench;
  bench.RunToStart();
  bench.conductor.RequestStacks(bench.now, "a test");
  bench.Settle();
  bench.conductor.OnDisconnected(kFirst, "cut");
  bench.Hello(kSecond, "a", 1);
  bench.Settle();
  EXPECT_EQ(CountOf(bench.Heard(kSecond), v1::Command::kCaptureStacks), 1u);
}

TEST(ConductorStacksTest, WhatDoesNotRunHasNone) {
  Bench bench;
  bench.Begin();
  bench.Settle();
  EXPECT_NE(bench.conductor.RequestStacks(bench.now, "a test"), "");
  EXPECT_FALSE(bench.conductor.WantsToWrite());
}

}  // namespace
}  // namespace aimaster
