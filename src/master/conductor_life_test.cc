// A master's time: silence, absence, succession, and the end.
#include <signal.h>

#include <algorithm>

#include "master/conductor_bench.h"

namespace aimaster {
namespace {

TEST(ConductorTest, ASilentNodeIsRecoveredOnceItsTimeIsOver) {
  Bench bench;
  bench.RunToStart();
  for (int second = 0; second < 29; ++second) {
    bench.Pass(1s);
    bench.conductor.Watch(bench.now);
  }
  EXPECT_EQ(bench.Count<RecoverAtProvider>(), 0u);
  bench.Pass(1s);
  bench.conductor.Watch(bench.now);
  EXPECT_EQ(bench.Count<RecoverAtProvider>(), 1u);
}

// A master that was stopped for an hour has heard nobody for an hour.
TEST(ConductorTest, AMasterThatWasAwayBlamesNoNode) {
  Bench bench;
  bench.RunToStart();
  bench.conductor.Watch(bench.now);
  bench.Pass(1h);
  bench.conductor.Watch(bench.now);
  EXPECT_EQ(bench.Count<RecoverAtProvider>(), 0u);
}

TEST(ConductorTest, ADeadlineThatWasMissedByFarWaitsForWhatIsInTheSockets) {
  Bench bench;
  bench.RunToStart();
  bench.Pass(1h);  // --start-timeout is ten minutes
  bench.conductor.OnTime(bench.now);
  EXPECT_FALSE(bench.conductor.WantsToWrite());
  bench.Report(kFirst, 2, Bench::Started(0));
  bench.Report(kFirst, 3, Bench::Started(1));
  bench.Settle();
  bench.Pass(1s);
  bench.conductor.OnTime(bench.now);
  bench.Settle();
  EXPECT_EQ(bench.conductor.engine().job().status, JobStatus::kRunning);
}

TEST(ConductorTest, ASuccessorDoesAgainWhatWasUnderWay) {
  Bench old;
  old.Begin();
  std::vector<Input> journal;
  const auto keep = [&] {
    while (old.conductor.WantsToWrite()) {
      for (const auto& [input, result] : old.conductor.BeginWrite()) journal.push_back(input);
      old.conductor.OnDurable(old.now);
    }
  };
  keep();
  old.Hello(kFirst);
  keep();

  Bench successor(2);
  Engine engine;
  for (const Input& input : journal) engine.Step(input);
  successor.conductor = Conductor(Epoch{2}, "/job", std::move(engine));
  successor.Begin();
  successor.Hello(kSecond, "a", 1);
  successor.Settle();
  EXPECT_EQ(successor.conductor.engine().job().epoch, Epoch{2});
  EXPECT_EQ(CountOf(successor.Heard(kSecond), v1::Command::kReservePort), 2u);  // taken over, and resent: idempotent
}

TEST(ConductorTest, AReadOnlyMasterLeavesTrainingAloneAndStopsItWhenAsked) {
  Bench old;
  old.RunToStart();
  Bench successor(2);
  successor.conductor = Conductor(Epoch{2}, "/job", old.conductor.engine());
  successor.conductor.BeginReadOnly(successor.now, "the last two masters died over this");
  successor.Hello(kFirst, "a", 1);
  successor.Report(kFirst, 2, Bench::Started(0));
  EXPECT_FALSE(successor.conductor.WantsToWrite());
  EXPECT_EQ(successor.conductor.trouble(), "the last two masters died over this");
  const std::vector<v1::ToAgent> heard = successor.Heard(kFirst);
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_TRUE(heard.front().has_welcome());
  successor.conductor.Stop(successor.now, false, "aimaster stop");
  EXPECT_EQ(CountOf(successor.Heard(kFirst), v1::Command::kStopInstance), 2u);
}

TEST(ConductorTest, WhatIsBeingSteppedIsTold) {
  Bench bench;
  std::vector<bool> told;
  bench.conductor.on_step = [&told](const Input* under_way) { told.push_back(under_way != nullptr); };
  bench.Begin();
  bench.conductor.BeginWrite();
  EXPECT_EQ(told, (std::vector<bool>{true, false, true, false}));
}

TEST(ConductorTest, ASignalGoesToEveryAgent) {
  Bench bench;
  bench.RunToStart();
  bench.Heard(kFirst);
  bench.conductor.Signal(SIGUSR1);
  EXPECT_EQ(CountOf(bench.Heard(kFirst), v1::Command::kSignalInstances), 1u);
}

// ---- the end ----

TEST(ConductorTest, LeavesWhenTheLastAgentHasGone) {
  Bench bench;
  bench.RunToStart();
  for (uint32_t rank : {0u, 1u}) {
    v1::Report report;
    report.mutable_rank_exited()->mutable_id()->set_instance(rank);
    report.mutable_rank_exited()->set_rank(rank);
    report.mutable_rank_exited()->set_code(0);
    bench.Report(kFirst, 2 + 2 * rank, report);
    v1::Report ended;
    ended.mutable_attempt_ended()->mutable_id()->set_instance(rank);
    bench.Report(kFirst, 3 + 2 * rank, ended);
  }
  bench.Heard(kFirst);
  bench.Settle();
  EXPECT_EQ(bench.conductor.engine().job().status, JobStatus::kSucceeded);
  EXPECT_EQ(bench.Count<Leave>(), 0u);
  EXPECT_EQ(CountOf(bench.Heard(kFirst), v1::Command::kShutdown), 1u);
  bench.conductor.OnDisconnected(kFirst, "goodbye");
  EXPECT_EQ(bench.Count<Leave>(), 1u);
}

TEST(ConductorTest, DoesNotWaitForeverForAnAgentThatStays) {
  Bench bench;
  bench.Begin();
  bench.Settle();
  bench.Hello(kFirst);
  bench.Settle();
  bench.conductor.Stop(bench.now, true, "test");
  bench.Settle();
  ASSERT_EQ(bench.conductor.engine().job().phase, Phase::kEnded);
  EXPECT_EQ(bench.Count<Leave>(), 0u);
  ASSERT_TRUE(bench.conductor.NextDeadline());
  bench.now.monotonic = *bench.conductor.NextDeadline();
  bench.conductor.OnTime(bench.now);
  EXPECT_EQ(bench.Count<Leave>(), 1u);
}

std::vector<std::string> TextsOf(const google::protobuf::RepeatedPtrField<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

TEST(ConductorTest, TextsOfTheJobsOwnAreToldToEveryAgentAndWithEveryWelcome) {
  Bench bench;
  bench.RunToStart();
  bench.Heard(kFirst);
  v1::Report report;
  report.mutable_retryable_errors()->add_texts("connect timeout");
  bench.Report(kFirst, 2, report);
  EXPECT_TRUE(bench.Heard(kFirst).empty()) << "it is not durable yet";
  bench.Settle();
  const std::vector<v1::ToAgent> heard = bench.Heard(kFirst);
  ASSERT_EQ(CountOf(heard, v1::Command::kRetryableErrors), 1u);
  EXPECT_EQ(Acknowledgements(heard), 1u);
  bench.Hello(kSecond, "b");
  bench.Settle();
  const std::vector<v1::ToAgent> welcome = bench.Heard(kSecond);
  ASSERT_TRUE(welcome.front().has_welcome());
  EXPECT_EQ(TextsOf(welcome.front().welcome().job().retryable_errors()), (std::vector<std::string>{"connect timeout"}));
}

}  // namespace
}  // namespace aimaster
