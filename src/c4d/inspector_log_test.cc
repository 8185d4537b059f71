#include "c4d/inspector_log.h"

#include <gtest/gtest.h>

#include <chrono>

#include "c4d/inspector_test_support.h"

namespace aimaster::c4d {
namespace {

using namespace std::chrono_literals;

TEST(InspectorLog, EachLineIsACollective) {
  for (const bool has_markers : {false, true}) {
    InspectorLogMaker maker(6, has_markers);
    const std::string text =
        maker.Collective("0x7f8c", 8, 6, 1407, 61974, 500).Collective("0xe6", 2, 1, 3, 5, 700).Text();
    ASSERT_TRUE(LooksLikeInspectorLog(text));
    const Result<InspectorLog> log = ReadInspectorLog(text, 100);
    ASSERT_TRUE(log) << log.error().message;
    EXPECT_EQ(log->process, "process 1006 on host-1");
    EXPECT_EQ(log->lines_left_out, 0);
    ASSERT_EQ(log->groups.size(), 2);
    EXPECT_EQ(log->groups[0].id, "0x7f8c");
    EXPECT_EQ(log->groups[0].position, 6);
    EXPECT_EQ(log->groups[1].size, 2);
    ASSERT_EQ(log->records.size(), 2);
    EXPECT_EQ(log->records[0].function, Function::kAllReduce);
    EXPECT_EQ(log->records[0].sequence, 1407);
    EXPECT_EQ(log->records[0].bytes, 1048576);
    EXPECT_EQ(log->records[0].duration, 61974us);
    EXPECT_EQ(log->records[1].group, 1);
    EXPECT_EQ(log->records[1].written - log->records[0].written, 200us);
  }
}

TEST(InspectorLog, WhatCantBeUsedIsCounted) {
  InspectorLogMaker maker(0);
  std::string text = maker.Collective("0x7f", 2, 0, 1, 10, 0).Collective("0x7f", 2, 0, 2, 10, 0, "kernel_cpu").Text();
  text += "hello\n{\"x\":1}\n[3]\n\n";
  text += R"({"coll_perf":{"coll":"AllReduce","coll_sn":3,"coll_msg_size_bytes":9000,"coll_exec_time_us":5}})";
  const Result<InspectorLog> log = ReadInspectorLog(text, 100);
  ASSERT_TRUE(log) << log.error().message;
  EXPECT_EQ(log->records.size(), 1);
  EXPECT_EQ(log->lines_without_device, 1);
  EXPECT_EQ(log->lines_left_out, 4) << "the last one does not say of which communicator it is";
}

TEST(InspectorLog, WhoIsNotOneProcessOnOneDeviceIsRefused) {
  const std::string one = InspectorLogMaker(0).Collective("0x7f", 4, 0, 1, 10, 0).Text();
  const auto why = [&](const std::string& text) { return ReadInspectorLog(one + text, 100).error().message; };
  EXPECT_TRUE(why(InspectorLogMaker(0).Collective("0x7f", 4, 1, 1, 10, 0).Text()).starts_with("is of one process for"));
  EXPECT_TRUE(why(InspectorLogMaker(1).Collective("0x7f", 4, 1, 1, 10, 0).Text()).starts_with("tells of several"));
  EXPECT_TRUE(ReadInspectorLog(one, 0).error().message.starts_with("is one too many"));
  EXPECT_FALSE(ReadInspectorLog("{\"coll_perf\":{}}", 100));
}

TEST(InspectorLog, ACutLeavesWhatIsWhole) {
  for (const bool has_markers : {false, true}) {
    InspectorLogMaker maker(0, has_markers);
    for (uint64_t sequence = 1; sequence < 4; ++sequence) maker.Collective("0x7f", 4, 0, sequence, 10, 0);
    const std::string& text = maker.Text();
    size_t before = 0;
    for (size_t size = 0; size < text.size(); ++size) {
      const Result<InspectorLog> log = ReadInspectorLog(std::string_view(text).substr(0, size), 100);
      const size_t records = log ? log->records.size() : 0;
      ASSERT_GE(records, before) << size;
      before = records;
      ReadInspectorLog(std::string_view(text).substr(size), 100);
    }
    EXPECT_EQ(before, 3);
  }
}

}  // namespace
}  // namespace aimaster::c4d
