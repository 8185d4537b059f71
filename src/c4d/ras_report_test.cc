#include "c4d/ras_report.h"

#include <gtest/gtest.h>

#include "c4d/ras_test_support.h"

namespace aimaster::c4d {
namespace {

TEST(RasReport, WhoAnsweredAndWhatTheyLaunched) {
  const std::string text = RasMaker("2026-06-19 06:51:56").Communicator({5, 2}, {3, 10}).Text();
  ASSERT_TRUE(LooksLikeRasReport(text));
  const Result<RasReport> report = ReadRasReport(text);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->version, "2.28.9");
  ASSERT_EQ(report->communicators.size(), 1);
  const RasCommunicator& communicator = report->communicators[0];
  EXPECT_EQ(communicator.hash, "0x4e0104c2022fa2f0");
  EXPECT_EQ(communicator.size, 2);
  EXPECT_TRUE(communicator.is_whole);
  ASSERT_EQ(communicator.members.size(), 2);
  EXPECT_EQ(communicator.members[0].process, "process 1005 on 10.0.0.1, device 1");
  EXPECT_EQ(communicator.members[1].counts[static_cast<size_t>(Function::kAllReduce)], 10);
  EXPECT_EQ(communicator.members[1].trouble, "");
}

TEST(RasReport, TimesAreSecondsOfOneClock) {
  const auto taken = [](const char* time) { return ReadRasReport(RasMaker(time).Text())->taken_seconds; };
  EXPECT_EQ(*taken("2026-03-01 00:00:01") - *taken("2026-02-28 23:59:59"), 2);
  EXPECT_FALSE(taken("yesterday"));
  EXPECT_FALSE(taken("2026-02-31 00:00:00"));
}

TEST(RasReport, WhoIsMissingAndTheCommaThatOneVersionForgets) {
  for (const bool has_commas : {true, false}) {
    RasMaker maker("2026-06-19 06:55:57");
    if (!has_commas) maker.WithoutCommas();
    const Result<RasReport> report = ReadRasReport(maker.Communicator({0, 1, 2}, {4, -1, -1}).Text());
    ASSERT_TRUE(report) << report.error().message;
    const RasCommunicator& communicator = report->communicators[0];
    ASSERT_EQ(communicator.members.size(), 3);
    EXPECT_TRUE(communicator.is_whole);
    EXPECT_FALSE(communicator.members[0].is_missing);
    EXPECT_TRUE(communicator.members[2].is_missing);
    EXPECT_EQ(communicator.members[1].process, "process 1001 on 10.0.0.0, device 1");
    EXPECT_EQ(communicator.members[1].trouble, "it does not answer RAS");
  }
}

TEST(RasReport, WhatNcclSaysOfItself) {
  const auto member = [](int init_state, int async_error) {
    const std::string text = RasMaker("").State(init_state, async_error).Communicator({0}, std::vector{1}).Text();
    return ReadRasReport(text)->communicators[0].members[0];
  };
  EXPECT_EQ(member(0, 2).trouble, "NCCL reports a system error");
  EXPECT_EQ(member(0, 99).trouble, "NCCL reports an error that is not known");
  EXPECT_EQ(member(0, 7).trouble, "") << "at work";
  EXPECT_TRUE(member(7, 0).is_starting);
}

TEST(RasReport, WhatIsInDoubtIsMarked) {
  RasMaker twice("");
  std::string text = twice.Communicator({0, 1}, {4, 4}).Text();
  text.replace(text.rfind("\"rank\": 1"), 9, "\"rank\": 0");
  const Result<RasReport> report = ReadRasReport(text);
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->communicators[0].is_whole);
  EXPECT_EQ(report->communicators[0].members.size(), 1);
}

TEST(RasReport, WhatIsCutIsNoReportUnlessTheListIsWhole) {
  const std::string text =
      RasMaker("2026-06-19 06:55:57").Communicator({0, 1}, {4, -1}).Communicator({0}, std::vector{3}).Text();
  const size_t whole = text.find("\n  \"ras\"") - 1;
  for (size_t size = 0; size < text.size(); ++size) {
    const Result<RasReport> report = ReadRasReport(std::string_view(text).substr(0, size));
    ASSERT_EQ(report.has_value(), size >= whole) << size;
    if (report) {
      EXPECT_EQ(report->communicators.size(), 2);
    }
  }
  EXPECT_TRUE(ReadRasReport(text.substr(0, 500)).error().message.starts_with("is cut short"));
}

TEST(RasReport, OthersAreNoReports) {
  EXPECT_FALSE(LooksLikeRasReport(R"({"version":"2.9","nccl_version":"2.28.9","pg_config":{}})"));
  EXPECT_FALSE(LooksLikeRasReport("communicators"));
  EXPECT_FALSE(ReadRasReport(R"({"communicators":3})"));
  EXPECT_FALSE(ReadRasReport(R"({"communicators":[3]})"));
  EXPECT_FALSE(ReadRasReport(R"({"communicators":[{"hash":"0x1","size":99999999}]})"));
}

}  // namespace
}  // namespace aimaster::c4d
