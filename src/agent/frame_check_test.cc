#include "agent/frame_check.h"

#include <gtest/gtest.h>

#include "agent/limits.h"
#include "core/file_name.h"

namespace aimaster::agent {
namespace {

v1::ToAgent GoodStart() {
  v1::ToAgent message;
  v1::StartInstance& start = *message.mutable_command()->mutable_start_instance();
  start.set_instance_name("dlc0000000000000-worker-0");
  start.add_ranks()->set_rank(0);
  return message;
}

bool IsGood(const v1::ToAgent& message) { return ParseFrame(message.SerializeAsString()).has_value(); }

TEST(FrameCheckTest, TakesAGoodStart) { EXPECT_TRUE(IsGood(GoodStart())); }

TEST(FrameCheckTest, NamesCannotLeaveTheirDirectory) {
  for (const char* name : {"", ".", "..", "../x", "a/b", "/etc", "a b", "a\nb", "ä"}) {
    EXPECT_FALSE(IsSafeName(name)) << name;
    v1::ToAgent message = GoodStart();
    message.mutable_command()->mutable_start_instance()->set_instance_name(name);
    EXPECT_FALSE(IsGood(message)) << name;
  }
  EXPECT_FALSE(IsSafeName(std::string(kFileNameMaxBytes + 1, 'a')));
  EXPECT_TRUE(IsSafeName("a.b_c-D9"));
}

TEST(FrameCheckTest, NumbersAreBounded) {
  v1::ToAgent message = GoodStart();
  message.mutable_command()->mutable_start_instance()->mutable_id()->set_instance(kIndexMax + 1);
  EXPECT_FALSE(IsGood(message));
  message = GoodStart();
  message.mutable_command()->mutable_start_instance()->mutable_ranks(0)->set_local(kRanksPerInstanceMax);
  EXPECT_FALSE(IsGood(message));
  message = GoodStart();
  message.mutable_command()->mutable_start_instance()->set_own_port(65536);
  EXPECT_FALSE(IsGood(message));
  v1::ToAgent ports;
  ports.mutable_command()->mutable_reserve_port()->set_count(kPortsMax);
  EXPECT_TRUE(IsGood(ports));
  ports.mutable_command()->mutable_reserve_port()->set_count(kPortsMax + 1);
  EXPECT_FALSE(IsGood(ports));
}

TEST(FrameCheckTest, RanksExistAndHaveTheirOwnFiles) {
  v1::ToAgent message = GoodStart();
  message.mutable_command()->mutable_start_instance()->add_ranks()->set_rank(1);  // local 0 again
  EXPECT_FALSE(IsGood(message));
  message.mutable_command()->mutable_start_instance()->clear_ranks();
  EXPECT_FALSE(IsGood(message));
}

TEST(FrameCheckTest, VariablesCannotBreakOutOfTheLaunchFile) {
  const std::pair<std::string, std::string> bad[] = {{"", "x"},
                                                     {"A=B", "x"},
                                                     {std::string("A\0B", 3), "x"},
                                                     {"A", std::string("x\0y", 3)},
                                                     {"A", std::string(kStringMaxBytes + 1, 'x')}};
  for (const auto& [name, value] : bad) {
    v1::ToAgent message = GoodStart();
    (*message.mutable_command()->mutable_start_instance()->mutable_ranks(0)->mutable_environment())[name] = value;
    EXPECT_FALSE(IsGood(message)) << name;
  }
}

TEST(FrameCheckTest, HostsCannotBreakOutOfTheHostFile) {
  const auto with_host = [](const std::string& address) {
    v1::ToAgent message = GoodStart();
    v1::MpiPart& part = *message.mutable_command()->mutable_start_instance()->mutable_mpi();
    part.mutable_launcher()->add_hosts()->set_address(address);
    return message;
  };
  for (const char* address : {"10.0.0.1", "gpu-7.cluster.local", "fd00::2"}) EXPECT_TRUE(IsGood(with_host(address)));
  for (const char* address : {"", "a b", "a slots=9", "a\nb", "$(true)"}) EXPECT_FALSE(IsGood(with_host(address)));
  v1::ToAgent message = with_host("a");
  message.mutable_command()->mutable_start_instance()->mutable_mpi()->mutable_launcher()->set_port(65'536);
  EXPECT_FALSE(IsGood(message));
}

TEST(FrameCheckTest, AJobHasACommandAndAbsolutePaths) {
  v1::ToAgent message;
  v1::JobConfig& job = *message.mutable_welcome()->mutable_job();
  job.set_job_id("dlc0000000000000");
  job.set_working_directory("/");
  EXPECT_FALSE(IsGood(message));
  job.add_command("true");
  EXPECT_TRUE(IsGood(message));
  job.set_log_directory("logs");
  EXPECT_FALSE(IsGood(message));
  job.clear_log_directory();
  job.set_working_directory(".");
  EXPECT_FALSE(IsGood(message));
}

TEST(FrameCheckTest, TimesAreTimes) {
  v1::ToAgent message;
  message.mutable_heartbeat_reply()->set_master_wall_ns(1'700'000'000'000'000'000);
  EXPECT_TRUE(IsGood(message));
  message.mutable_heartbeat_reply()->set_agent_wall_ns(-1);
  EXPECT_FALSE(IsGood(message));
  message.mutable_heartbeat_reply()->set_agent_wall_ns(INT64_MAX);
  EXPECT_FALSE(IsGood(message));
}

TEST(FrameCheckTest, WhatIsNoMessageIsAnError) {
  EXPECT_FALSE(ParseFrame("").has_value());
  EXPECT_FALSE(ParseFrame("hello").has_value());
}

// After an update a job is led by a newer master than its agents are; that is no reason to hang up.
TEST(FrameCheckTest, WhatANewerMasterSaysIsTakenAndMeansNothing) {
  v1::ToAgent message;
  message.mutable_command()->set_epoch(1);
  const std::string unknown_field = {'\xa2', '\x7d', '\x01', 'x'};  // number 2004, a text
  const Result<v1::ToAgent> parsed = ParseFrame(message.SerializeAsString() + unknown_field);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->command().body_case(), v1::Command::BODY_NOT_SET);
}

TEST(FrameCheckTest, TextsOfTheJobsOwnAreFewAndShort) {
  v1::ToAgent message;
  v1::RetryableErrors& errors = *message.mutable_command()->mutable_retryable_errors();
  for (size_t i = 0; i < kRetryableTextsMax; ++i) errors.add_texts("text");
  EXPECT_TRUE(IsGood(message));
  errors.add_texts("one more");
  EXPECT_FALSE(IsGood(message));
  errors.clear_texts();
  errors.add_texts("");
  EXPECT_FALSE(IsGood(message));
  errors.set_texts(0, std::string(kRetryableTextMaxBytes + 1, 'x'));
  EXPECT_FALSE(IsGood(message));
}

}  // namespace
}  // namespace aimaster::agent
