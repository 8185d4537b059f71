// What a rank may say to its agent, and what is refused before anybody hears of it.
#include "agent/sdk_api.h"

#include <gtest/gtest.h>

#include "core/failure.h"

namespace aimaster::agent {
namespace {

class FakeNode : public SdkApi::Node {
 public:
  Status AddRetryableErrors(const std::vector<std::string>& added) override {
    texts.insert(texts.end(), added.begin(), added.end());
    return {};
  }
  Status SetStep(pid_t caller, std::optional<uint32_t> rank, uint64_t step) override {
    if (!rank && caller != 7) return Fail(ErrorKind::kUsage, "no rank of this node asks");
    steps.emplace_back(rank.value_or(0), step);
    return {};
  }
  State GetState() const override { return {"dlc0123456789abc", "node-0", true, texts}; }

  std::vector<std::string> texts;
  std::vector<std::pair<uint32_t, uint64_t>> steps;
};

class SdkApiTest : public ::testing::Test {
 protected:
  unsigned Post(const std::string& target, const std::string& body, pid_t caller = 7) {
    last_ = api_.Answer({"POST", target, body}, caller);
    return last_.status;
  }

  FakeNode node_;
  SdkApi api_{node_};
  HttpResponse last_;
};

TEST_F(SdkApiTest, TextsAreTakenAsTheyAre) {
  EXPECT_EQ(Post("/v1/retryable_errors", R"({"errors": ["connect timeout", "Fehler ü\n"]})"), 200u);
  EXPECT_EQ(node_.texts, (std::vector<std::string>{"connect timeout", "Fehler ü\n"}));
  EXPECT_EQ(api_.Answer({"GET", "/v1/status", ""}, 0).body,
            "{\"connected\":true,\"job\":\"dlc0123456789abc\",\"node\":\"node-0\","
            "\"retryable_errors\":[\"connect timeout\",\"Fehler ü\\n\"]}\n");
}

TEST_F(SdkApiTest, OneBadTextRefusesAllOfThem) {
  const std::string too_long(kRetryableTextMaxBytes + 1, 'x');
  for (const std::string& body :
       {std::string(), std::string("{"), std::string("[]"), std::string(R"({"errors": "one"})"),
        std::string(R"({"errors": ["good", 7]})"), std::string(R"({"errors": ["good", ""]})"),
        R"({"errors": ["good", ")" + too_long + "\"]}", std::string(100'000, '[')}) {
    EXPECT_EQ(Post("/v1/retryable_errors", body), 400u) << body.substr(0, 50);
    EXPECT_TRUE(last_.body.starts_with("{\"error\":")) << last_.body;
  }
  EXPECT_TRUE(node_.texts.empty());
}

TEST_F(SdkApiTest, AStepIsTheCallersOrThatOfTheRankThatItNames) {
  EXPECT_EQ(Post("/v1/step", R"({"step": 120})"), 200u);
  EXPECT_EQ(Post("/v1/step", R"({"step": 121, "rank": 3})", 0), 200u);
  EXPECT_EQ(node_.steps, (std::vector<std::pair<uint32_t, uint64_t>>{{0, 120}, {3, 121}}));
  EXPECT_EQ(Post("/v1/step", R"({"step": 122})", 8), 400u) << "who is that?";
  EXPECT_EQ(last_.body, "{\"error\":\"no rank of this node asks\"}\n");
}

TEST_F(SdkApiTest, WhatIsNoStepIsRefused) {
  for (const char* body : {R"({})", R"({"step": -1})", R"({"step": 1.5})", R"({"step": "7"})", R"({"step": 1e3})",
                           R"({"step": 9007199254740992})", R"({"step": 1, "rank": -2})", R"({"step": 1, "rank": 1e9})",
                           R"({"step": 1, "rank": 4294967297})", "null"}) {
    EXPECT_EQ(Post("/v1/step", body), 400u) << body;
  }
  EXPECT_TRUE(node_.steps.empty());
}

TEST_F(SdkApiTest, WhatIsNotThereAndWhatIsAskedForInTheWrongWay) {
  EXPECT_EQ(Post("/v1/nothing", "{}"), 404u);
  EXPECT_EQ(Post("/v1/status", "{}"), 405u);
  EXPECT_EQ(api_.Answer({"GET", "/v1/step", ""}, 7).status, 405u);
}

}  // namespace
}  // namespace aimaster::agent
