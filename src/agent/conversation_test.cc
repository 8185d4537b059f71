#include "agent/conversation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "agent/backoff.h"

namespace aimaster::agent {
namespace {

v1::JobConfig MakeJob() {
  v1::JobConfig job;
  job.set_job_id("dlc0000000000000");
  job.add_command("true");
  job.set_working_directory("/");
  return job;
}

std::string WelcomeOf(uint64_t epoch) {
  v1::ToAgent message;
  message.mutable_welcome()->set_epoch(epoch);
  *message.mutable_welcome()->mutable_job() = MakeJob();
  return message.SerializeAsString();
}

std::string CommandOf(uint64_t epoch) {
  v1::ToAgent message;
  message.mutable_command()->set_epoch(epoch);
  message.mutable_command()->mutable_shutdown();
  return message.SerializeAsString();
}

std::string RefusalOf(uint64_t epoch) {
  v1::ToAgent message;
  message.mutable_refused()->set_epoch(epoch);
  message.mutable_refused()->set_job_over(true);
  return message.SerializeAsString();
}

std::string AcknowledgeOf(uint64_t sequence) {
  v1::ToAgent message;
  message.mutable_acknowledge()->set_sequence(sequence);
  return message.SerializeAsString();
}

v1::Report ReadyReport(uint32_t instance) {
  v1::Report report;
  report.mutable_attempt_ready()->mutable_id()->set_instance(instance);
  return report;
}

template <typename T>
size_t Count(const Steps& steps) {
  return static_cast<size_t>(
      std::ranges::count_if(steps, [](const Step& step) { return std::holds_alternative<T>(step); }));
}

v1::ToMaster Sent(const Step& step) {
  v1::ToMaster message;
  EXPECT_TRUE(message.ParseFromString(std::get<Send>(step).message));
  return message;
}

class ConversationTest : public testing::Test {
 protected:
  Steps Open() { return conversation.OnOpen({}); }
  Steps Hear(const std::string& bytes) { return conversation.OnMessage(bytes, Wall{}); }
  void Connect(uint64_t epoch) {
    Open();
    Hear(WelcomeOf(epoch));
    ASSERT_TRUE(conversation.is_welcomed());
  }
  Conversation conversation{{.node = 3, .node_name = "node-3"}, 4};
};

TEST_F(ConversationTest, OpensWithWhoItIsAndWhatItHolds) {
  const Steps steps = conversation.OnOpen({{7, 1}});
  ASSERT_EQ(steps.size(), 1u);
  const v1::Hello hello = Sent(steps[0]).hello();
  EXPECT_EQ(hello.node(), 3u);
  EXPECT_EQ(hello.node_name(), "node-3");
  EXPECT_EQ(hello.greatest_epoch(), 4u);
  ASSERT_EQ(hello.live_size(), 1);
  EXPECT_EQ(hello.live(0).instance(), 7u);
}

TEST_F(ConversationTest, ANewMastersEpochIsSavedBeforeAnythingElseIsDone) {
  Open();
  const Steps steps = Hear(WelcomeOf(5));
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(std::get<SaveEpoch>(steps[0]).epoch, 5u);
  EXPECT_EQ(std::get<Welcomed>(steps[1]).job.job_id(), "dlc0000000000000");
}

TEST_F(ConversationTest, TheSameMasterNeedsNoSaving) {
  Open();
  EXPECT_EQ(Count<SaveEpoch>(Hear(WelcomeOf(4))), 0u);
  EXPECT_TRUE(conversation.is_welcomed());
}

TEST_F(ConversationTest, AnOlderMasterIsHungUpOnAndObeyedInNothing) {
  Open();
  EXPECT_EQ(Count<HangUp>(Hear(WelcomeOf(3))), 1u);
  EXPECT_FALSE(conversation.is_welcomed());
  EXPECT_EQ(Count<Order>(Hear(CommandOf(3))), 0u);
  EXPECT_EQ(conversation.greatest_epoch(), 4u);
}

TEST_F(ConversationTest, ACommandFromThePastIsIgnored) {
  Connect(9);
  EXPECT_EQ(Count<Order>(Hear(CommandOf(8))), 0u);
  EXPECT_EQ(Count<Order>(Hear(CommandOf(9))), 1u);
}

TEST_F(ConversationTest, AMasterThatWasLeftBehindCannotEndTheJob) {
  Open();
  const Steps old = Hear(RefusalOf(3));
  EXPECT_EQ(Count<Refuse>(old), 0u);
  EXPECT_EQ(Count<HangUp>(old), 1u);
  EXPECT_EQ(Count<Refuse>(Hear(RefusalOf(4))), 1u);
}

TEST_F(ConversationTest, ARefusalByANewerMasterIsSavedAndObeyed) {
  Open();
  const Steps steps = Hear(RefusalOf(5));
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(std::get<SaveEpoch>(steps[0]).epoch, 5u);
  EXPECT_TRUE(std::get<Refuse>(steps[1]).job_over);
}

TEST_F(ConversationTest, CommandsBeforeTheWelcomeAreIgnored) {
  Open();
  EXPECT_EQ(Count<Order>(Hear(CommandOf(9))), 0u);
}

TEST_F(ConversationTest, ReportsWaitForAWelcomeAndGoOutInOrder) {
  EXPECT_TRUE(conversation.Say(ReadyReport(1)).empty());
  Open();
  EXPECT_TRUE(conversation.Say(ReadyReport(2)).empty());
  const Steps steps = Hear(WelcomeOf(4));
  ASSERT_EQ(Count<Send>(steps), 2u);
  EXPECT_EQ(Sent(steps[1]).report().sequence(), 1u);
  EXPECT_EQ(Sent(steps[2]).report().sequence(), 2u);
}

TEST_F(ConversationTest, WhatWasNotAcknowledgedIsSaidAgainAfterAReconnect) {
  Connect(4);
  for (uint32_t i = 0; i < 3; ++i) conversation.Say(ReadyReport(i));
  Hear(AcknowledgeOf(2));
  conversation.OnClose();
  const v1::Hello hello = Sent(Open()[0]).hello();
  EXPECT_EQ(hello.first_unacknowledged(), 3u);
  const Steps steps = Hear(WelcomeOf(4));
  ASSERT_EQ(Count<Send>(steps), 1u);
  EXPECT_EQ(Sent(steps.back()).report().sequence(), 3u);
}

TEST_F(ConversationTest, AnOlderMasterCannotTakeReportsAway) {
  Connect(4);
  conversation.Say(ReadyReport(1));
  conversation.OnClose();
  Open();
  Hear(WelcomeOf(3));
  Hear(AcknowledgeOf(1));
  EXPECT_TRUE(conversation.has_unacknowledged());
}

TEST_F(ConversationTest, SayingTheSameTwiceIsOneReport) {
  Connect(4);
  EXPECT_EQ(conversation.Say(ReadyReport(1)).size(), 1u);
  EXPECT_TRUE(conversation.Say(ReadyReport(1)).empty());
  Hear(AcknowledgeOf(1));
  EXPECT_EQ(conversation.Say(ReadyReport(1)).size(), 1u);  // once it is acknowledged, it may be wanted again
}

TEST_F(ConversationTest, GarbageIsNotedAndChangesNothing) {
  Connect(4);
  for (const std::string& bytes : {std::string("\xff\xff\xff"), std::string(), std::string(100, '\n')}) {
    const Steps steps = Hear(bytes);
    EXPECT_EQ(steps.size(), Count<Note>(steps));
  }
  EXPECT_TRUE(conversation.is_welcomed());
}

TEST_F(ConversationTest, HeartbeatsTellTheClockOnceAReplyHasCome) {
  Connect(4);
  const Moment now{{Duration(5)}, {Duration(1'000)}};
  v1::Heartbeat heartbeat = Sent(conversation.Heartbeat(now, {.bytes = 42})[0]).heartbeat();
  EXPECT_EQ(heartbeat.log_bytes(), 42u);
  EXPECT_EQ(Duration(heartbeat.clock_uncertainty_ns()), Duration(kClockUncertaintyUnknown));

  v1::ToAgent reply;
  reply.mutable_heartbeat_reply()->set_agent_wall_ns(1'000);
  reply.mutable_heartbeat_reply()->set_master_wall_ns(5'100);
  conversation.OnMessage(reply.SerializeAsString(), Wall{Duration(1'200)});
  heartbeat = Sent(conversation.Heartbeat(now, {})[0]).heartbeat();
  EXPECT_EQ(heartbeat.clock_offset_ns(), 4'000);
  EXPECT_EQ(heartbeat.clock_uncertainty_ns(), 100);
}

TEST_F(ConversationTest, HeartbeatsTellForHowLongItHasBeenQuiet) {
  Connect(4);
  const Moment now{{Duration(5'000)}, {Duration(1'000)}};
  v1::Heartbeat heartbeat = Sent(conversation.Heartbeat(now, {})[0]).heartbeat();
  EXPECT_FALSE(heartbeat.has_silent_ns()) << "no rank runs";
  EXPECT_EQ(heartbeat.look(), 0u);

  const LogActivity activity{
      .quiet = LogActivity::Quiet{.silent = Duration(70), .quietest_rank = 3, .quietest_silent = Duration(80)},
      .look = 9};
  heartbeat = Sent(conversation.Heartbeat(now, activity)[0]).heartbeat();
  EXPECT_EQ(heartbeat.silent_ns(), 70);
  EXPECT_EQ(heartbeat.quietest_rank(), 3u);
  EXPECT_EQ(heartbeat.quietest_silent_ns(), 80);
  EXPECT_EQ(heartbeat.look(), 9u);
}

TEST_F(ConversationTest, HeartbeatsTellWhatRanksHaveTold) {
  Connect(4);
  Tidings tidings;
  v1::Heartbeat heartbeat = Sent(conversation.Heartbeat({}, {}, tidings)[0]).heartbeat();
  EXPECT_FALSE(heartbeat.has_hang_setting());
  EXPECT_FALSE(heartbeat.has_progress());
  tidings.SetHang({.interval_ms = kHangIntervalOffMs, .set_at_ns = 77, .round = 3});
  tidings.SetStep({{0, 0}, 0}, 90, 0.5, Monotonic{Duration(100)});
  tidings.SetCheckpoint({{0, 0}, 0}, 80, Monotonic{Duration(60)});
  heartbeat = Sent(conversation.Heartbeat({}, {}, tidings)[0]).heartbeat();
  EXPECT_EQ(heartbeat.hang_setting().interval_ms(), kHangIntervalOffMs);
  EXPECT_EQ(heartbeat.hang_setting().set_at_ns(), 77u);
  EXPECT_EQ(heartbeat.hang_setting().round(), 3u);
  EXPECT_EQ(heartbeat.progress().step(), 90u);
  EXPECT_EQ(heartbeat.progress().checkpoint_step(), 80u);
  EXPECT_EQ(heartbeat.progress().checkpoint_ns(), 60u);
  EXPECT_EQ(heartbeat.progress().loss(), 0.5);
}

TEST_F(ConversationTest, AMessageThatIsSaidTwiceIsTwoMessages) {
  v1::Report message;
  message.mutable_custom_message()->set_content("loss is NaN");
  conversation.Say(message);
  conversation.Say(message);
  EXPECT_EQ(conversation.CountUnacknowledged(v1::Report::kCustomMessage), 2u);
  EXPECT_EQ(conversation.CountUnacknowledged(v1::Report::kRetryableErrors), 0u);
}

TEST(ClockOffsetTest, TheFastestAnswerCounts) {
  ClockOffset clock;
  clock.Add(Wall{Duration(0)}, Wall{Duration(900)}, Wall{Duration(1'000)});
  clock.Add(Wall{Duration(2'000)}, Wall{Duration(2'510)}, Wall{Duration(2'020)});
  clock.Add(Wall{Duration(3'000)}, Wall{Duration(9'999)}, Wall{Duration(5'000)});
  EXPECT_EQ(clock.Estimate().offset, Duration(500));
  EXPECT_EQ(clock.Estimate().uncertainty, Duration(10));
}

TEST(ClockOffsetTest, OldAnswersAreForgotten) {
  ClockOffset clock;
  clock.Add(Wall{Duration(0)}, Wall{Duration(1)}, Wall{Duration(2)});
  for (size_t i = 0; i < kClockSamples; ++i) clock.Add(Wall{Duration(0)}, Wall{Duration(150)}, Wall{Duration(100)});
  EXPECT_EQ(clock.Estimate().offset, Duration(100));
}

TEST(ClockOffsetTest, AnAnswerFromBeforeItsQuestionSaysNothing) {
  ClockOffset clock;
  clock.Add(Wall{Duration(1'000)}, Wall{Duration(1)}, Wall{Duration(2)});
  EXPECT_EQ(clock.Estimate().uncertainty, Duration(kClockUncertaintyUnknown));
}

TEST(ClockOffsetTest, OneMachineHasOneClock) {
  ClockOffset clock;
  clock.SetShared(true);
  clock.Add(Wall{Duration(0)}, Wall{Duration(900)}, Wall{Duration(1'000)});
  EXPECT_EQ(clock.Estimate().offset, Duration::zero());
  EXPECT_EQ(clock.Estimate().uncertainty, Duration::zero());
}

TEST(BackoffTest, StartsFastEndsBoundedAndStartsAgain) {
  Backoff backoff;
  EXPECT_EQ(backoff.Next(0), Duration(kBackoffFirst) / 2);
  for (int i = 0; i < 20; ++i) backoff.Next(0);
  for (uint64_t random : {0ull, 1ull, ~0ull, 123456789123ull}) {
    const Duration next = backoff.Next(random);
    EXPECT_GE(next, Duration(kBackoffMax) / 2);
    EXPECT_LE(next, Duration(kBackoffMax));
  }
  backoff.Reset();
  EXPECT_LE(backoff.Next(~0ull), Duration(kBackoffFirst));
}

}  // namespace
}  // namespace aimaster::agent
