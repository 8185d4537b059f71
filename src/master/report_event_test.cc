// What comes from agents is checked before anybody believes it.
#include "master/report_event.h"

#include "engine/engine_harness.h"

namespace aimaster {
namespace {

v1::Report Exit(uint32_t instance, uint32_t rank) {
  v1::Report report;
  v1::RankExited* exited = report.mutable_rank_exited();
  exited->mutable_id()->set_instance(instance);
  exited->set_rank(rank);
  exited->set_code(1);
  return report;
}

TEST(ReportEventTest, TimesAreCorrectedToTheMastersClock) {
  EngineHarness job(2);
  job.Run();
  v1::Report report = Exit(1, 1);
  report.mutable_rank_exited()->set_signal(9);
  report.mutable_rank_exited()->set_exit_time_ns(5'000);
  report.mutable_rank_exited()->set_clock_offset_ns(-2'000);
  report.mutable_rank_exited()->set_clock_uncertainty_ns(70);
  const std::optional<Event> event = ReportEvent(report, NodeIndex{0}, job.job());
  ASSERT_TRUE(event);
  const RankFailure& failure = std::get<RankFailed>(*event).failure;
  EXPECT_EQ(failure.exit->time.since_epoch.count(), 3'000);
  EXPECT_EQ(failure.clock_uncertainty.count(), 70);
  EXPECT_EQ(failure.exit->signal, 9);
  EXPECT_EQ(ShellStatus(*failure.exit), 137);
}

TEST(ReportEventTest, ACodeOfZeroIsASuccess) {
  EngineHarness job(2);
  job.Run();
  v1::Report report = Exit(1, 1);
  report.mutable_rank_exited()->set_code(0);
  EXPECT_TRUE(std::holds_alternative<RankSucceeded>(*ReportEvent(report, NodeIndex{0}, job.job())));
}

TEST(ReportEventTest, ARankThatWasAskedToGoHasNotSucceeded) {
  EngineHarness job(2);
  job.Run();
  v1::Report report = Exit(1, 1);
  report.mutable_rank_exited()->set_code(0);
  report.mutable_rank_exited()->set_stopped_by_us(true);
  EXPECT_TRUE(std::holds_alternative<RankFailed>(*ReportEvent(report, NodeIndex{0}, job.job())));
}

TEST(ReportEventTest, ARankThatWasStoppedForWantOfAMasterHasFailed) {
  EngineHarness job(2);
  job.Run();
  v1::Report report = Exit(1, 1);
  report.mutable_rank_exited()->set_code(0);
  report.mutable_rank_exited()->set_orphaned_ms(2500);
  const std::optional<Event> event = ReportEvent(report, NodeIndex{0}, job.job());
  ASSERT_TRUE(std::holds_alternative<RankFailed>(*event));
  EXPECT_EQ(std::get<RankFailed>(*event).failure.orphaned, std::chrono::milliseconds(2500));
  EXPECT_FALSE(std::get<RankFailed>(*event).failure.stopped_by_us);
}

TEST(ReportEventTest, ARankThatWasLostHasNoExit) {
  EngineHarness job(2);
  job.Run();
  v1::Report report = Exit(1, 1);
  report.mutable_rank_exited()->set_lost_reason("its shim was killed");
  const std::optional<Event> event = ReportEvent(report, NodeIndex{0}, job.job());
  const RankFailure& failure = std::get<RankFailed>(*event).failure;
  EXPECT_FALSE(failure.exit);
  EXPECT_EQ(failure.lost_reason, "its shim was killed");
}

TEST(ReportEventTest, WhatTheJobDoesNotHaveIsRefused) {
  EngineHarness job(2);
  job.Run();
  EXPECT_FALSE(ReportEvent(Exit(2, 0), NodeIndex{0}, job.job())) << "no such instance";
  EXPECT_FALSE(ReportEvent(Exit(1, 0), NodeIndex{0}, job.job())) << "another instance's rank";
  EXPECT_FALSE(ReportEvent(v1::Report(), NodeIndex{0}, job.job())) << "nothing said";
  v1::Report silent = Exit(1, 1);
  silent.mutable_rank_exited()->clear_how();
  EXPECT_FALSE(ReportEvent(silent, NodeIndex{0}, job.job())) << "not how it ended";
}

TEST(ReportEventTest, PortsThatAreNoneAreRefused) {
  EngineHarness job(1);
  job.Run();
  v1::Report report;
  report.mutable_port_reserved()->set_reservation(3);
  report.mutable_port_reserved()->set_port(2001);
  EXPECT_EQ(ReportEvent(report, NodeIndex{1}, job.job()), Event(PortReserved{3, 2001, NodeIndex{1}, {2001}}));
  report.mutable_port_reserved()->add_ports(2001);
  report.mutable_port_reserved()->add_ports(2002);
  EXPECT_EQ(ReportEvent(report, NodeIndex{1}, job.job()), Event(PortReserved{3, 2001, NodeIndex{1}, {2001, 2002}}));
  report.mutable_port_reserved()->add_ports(65536);
  EXPECT_EQ(ReportEvent(report, NodeIndex{1}, job.job()),
            Event(PortRefused{3, "its agent reserved port 65536", NodeIndex{1}}));
}

TEST(ReportEventTest, TextsAreBoundedBetweenCharacters) {
  EngineHarness job(1);
  job.Run();
  v1::Report report = Exit(0, 0);
  std::string text(kErrorTextMaxBytes - 1, 'x');
  for (int i = 0; i < 1000; ++i) text += "\xC3\xA9";
  report.mutable_rank_exited()->set_last_error_line(text);
  for (int i = 0; i < 100; ++i) report.mutable_rank_exited()->add_matches()->set_line(text);
  const std::optional<Event> event = ReportEvent(report, NodeIndex{0}, job.job());
  const RankFailure& failure = std::get<RankFailed>(*event).failure;
  EXPECT_EQ(failure.last_error_line.size(), kErrorTextMaxBytes - 1);
  size_t bytes = 0;
  for (const LineMatch& match : failure.matches) bytes += match.line.size();
  EXPECT_GE(failure.matches.size(), 2u);
  EXPECT_LE(bytes, kMatchBytesPerRankMax + kErrorTextMaxBytes);
}

TEST(ReportEventTest, WhatARankSaidOfItselfGoesAlong) {
  EngineHarness job(2);
  job.Run();
  v1::Report report = Exit(1, 1);
  report.mutable_rank_exited()->set_retryable_text("connect timeout");
  report.mutable_rank_exited()->set_step(0);
  const std::optional<Event> told = ReportEvent(report, NodeIndex{0}, job.job());
  EXPECT_EQ(std::get<RankFailed>(*told).failure.retryable_text, "connect timeout");
  EXPECT_EQ(std::get<RankFailed>(*told).failure.step, 0u) << "the first step is a step";
  const std::optional<Event> silent = ReportEvent(Exit(1, 1), NodeIndex{0}, job.job());
  EXPECT_EQ(std::get<RankFailed>(*silent).failure.step, std::nullopt);
}

TEST(ReportEventTest, TextsOfTheJobsOwnAreFewAndShort) {
  EngineHarness job(2);
  job.Run();
  v1::Report report;
  report.mutable_retryable_errors();
  EXPECT_FALSE(ReportEvent(report, NodeIndex{0}, job.job())) << "none at all";
  report.mutable_retryable_errors()->add_texts("");
  report.mutable_retryable_errors()->add_texts(std::string(kRetryableTextMaxBytes + 1, 'x'));
  EXPECT_FALSE(ReportEvent(report, NodeIndex{0}, job.job()));
  for (size_t i = 0; i < 2 * kRetryableTextsMax; ++i) {
    report.mutable_retryable_errors()->add_texts("text " + std::to_string(i));
  }
  const std::optional<Event> event = ReportEvent(report, NodeIndex{0}, job.job());
  EXPECT_EQ(std::get<RetryableErrorsAdded>(*event).texts.size(), kRetryableTextsMax);
}

TEST(ReportEventTest, TheTimeOfACheckpointIsByTheMastersClock) {
  EngineHarness job(2);
  job.Run();
  v1::Report report;
  v1::Checkpoint& checkpoint = *report.mutable_checkpoint();
  checkpoint.set_round(1);
  checkpoint.set_step(80);
  checkpoint.set_time_ns(1'000);
  checkpoint.set_clock_offset_ns(-400);
  const std::optional<Event> event = ReportEvent(report, NodeIndex{0}, job.job());
  EXPECT_EQ(std::get<CheckpointTold>(*event), (CheckpointTold{Round{1}, 80, Wall{Duration{600}}}));
}

TEST(ReportEventTest, AMessageNamesItsInstanceAndARankOfIt) {
  EngineHarness job(2);
  job.Run();
  v1::Report report;
  v1::CustomMessage& message = *report.mutable_custom_message();
  message.mutable_id()->set_instance(1);
  EXPECT_FALSE(ReportEvent(report, NodeIndex{0}, job.job())) << "it says nothing";
  message.set_content(std::string(kErrorTextMaxBytes + 1, 'x'));
  message.set_rank(1);
  const auto told = [&] { return std::get<CustomMessageSent>(*ReportEvent(report, NodeIndex{0}, job.job())); };
  EXPECT_EQ(told(), (CustomMessageSent{InstanceIndex{1}, Rank{1}, std::string(kErrorTextMaxBytes, 'x')}));
  message.set_rank(0);
  EXPECT_EQ(told().rank, std::nullopt) << "that of another instance";
  message.mutable_id()->set_instance(2);
  EXPECT_FALSE(ReportEvent(report, NodeIndex{0}, job.job())) << "of no instance";
}

}  // namespace
}  // namespace aimaster
