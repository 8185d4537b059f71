#include "stacks/document.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "stacks/stacks_test_support.h"

namespace aimaster::stacks {
namespace {

Capture AnyCapture() {
  Capture capture = OneOf(4, 2);
  capture.number = 3;
  capture.time_ns = 1'700'000'000'123'456'789;
  capture.reason = "a hang: \"silent\" for 30 min";
  capture.processes[1].rank = kNone;
  capture.processes[3].is_child = true;
  capture.threads[0].holds_gil = true;
  capture.threads_cut = 7;
  return capture;
}

TEST(DocumentTest, WhatIsWrittenIsReadAgain) {
  const Capture capture = AnyCapture();
  const Result<Capture> again = ParseDocument(FormatDocument(capture));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, capture);
}

TEST(DocumentTest, WhatPointsNowhereIsRefused) {
  const auto whole = nlohmann::json::parse(FormatDocument(AnyCapture()));
  for (const char* table : {"frames", "stacks", "processes", "threads"}) {
    auto broken = whole;
    broken[table][0][0] = 1'000'000;
    EXPECT_FALSE(ParseDocument(broken.dump())) << table;
    broken[table][0][0] = -1;
    EXPECT_FALSE(ParseDocument(broken.dump())) << table;
    broken[table][0][0] = "x";
    EXPECT_FALSE(ParseDocument(broken.dump())) << table;
    broken.erase(table);
    EXPECT_FALSE(ParseDocument(broken.dump())) << table;
  }
}

TEST(DocumentTest, ANewerVersionIsToldFromRubbish) {
  auto newer = nlohmann::json::parse(FormatDocument(AnyCapture()));
  newer["version"] = 2;
  EXPECT_EQ(ParseDocument(newer.dump()).error().kind, ErrorKind::kVersion);
  EXPECT_EQ(ParseDocument("{}").error().kind, ErrorKind::kUsage);
  EXPECT_EQ(ParseDocument("Traceback for thread 7").error().kind, ErrorKind::kUsage);
}

TEST(DocumentTest, LaterVersionsMayAddKeysAndEntries) {
  const Capture capture = AnyCapture();
  auto more = nlohmann::json::parse(FormatDocument(capture));
  more["colour"] = "blue";
  for (auto& row : more["threads"]) row.push_back(12);
  const Result<Capture> read = ParseDocument(more.dump());
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, capture);
}

TEST(DocumentTest, JsonForPeopleHasStackThreadsAndCountOfEachGroup) {
  const auto json = nlohmann::json::parse(FormatJson(OneOf(4, 2)));
  const auto& first = json["groups"][0];
  EXPECT_EQ(first["count"], 1);
  EXPECT_EQ(first["ranks"], "2");
  EXPECT_EQ(first["stack"][1]["function"], "load_batch");
  EXPECT_EQ(first["stack"][1]["line"], 41);
  const auto& thread = first["threads"][0];
  EXPECT_EQ(thread["node"], "node-1");
  EXPECT_EQ(thread["instance"], "job-worker-2");
  EXPECT_EQ(thread["rank"], 2);
  EXPECT_EQ(thread["pid"], 1002);
  EXPECT_EQ(json["summary"], "rank 2 is alone at load_batch (train.py:41); 3 of 4 ranks wait for others");
  EXPECT_EQ(json["groups"][1]["ranks"], "0-1,3");
}

}  // namespace
}  // namespace aimaster::stacks
