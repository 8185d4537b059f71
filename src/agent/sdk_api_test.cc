// What a rank may say to its agent, and what is refused before anybody hears of it.
#include "agent/sdk_api.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "agent/limits.h"
#include "core/failure.h"

namespace aimaster::agent {
namespace {

class FakeNode : public SdkApi::Node {
 public:
  Status AddRetryableErrors(const std::vector<std::string>& added) override {
    texts.insert(texts.end(), added.begin(), added.end());
    return {};
  }
  Status SetStep(const SdkCaller& caller, uint64_t step, std::optional<double> its_loss) override {
    if (!caller.rank && caller.pid != 7) return Fail(ErrorKind::kUsage, "no rank of this node asks");
    steps.emplace_back(caller.rank.value_or(0), step);
    loss = its_loss;
    return {};
  }
  Status SetCheckpoint(const SdkCaller& caller, uint64_t step) override {
    checkpoints.emplace_back(caller.rank.value_or(0), step);
    return {};
  }
  Status SendMessage(const SdkCaller& caller, const std::string& content) override {
    if (messages.size() == 2) return Fail(ErrorKind::kEnvironment, "too many");
    messages.push_back(content);
    last_caller = caller;
    return {};
  }
  Status SetHangInterval(const SdkCaller& caller, int64_t interval_ms) override {
    hang = {.interval_ms = interval_ms, .set_at_ns = caller.at_ns.value_or(0), .round = caller.round.value_or(0)};
    last_caller = caller;
    return {};
  }
  State GetState() const override { return {"dlc0123456789abc", "node-0", true, texts, hang}; }

  std::vector<std::string> texts, messages;
  std::vector<std::pair<uint32_t, uint64_t>> steps, checkpoints;
  std::optional<double> loss;
  std::optional<HangSetting> hang;
  SdkCaller last_caller;
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

TEST_F(SdkApiTest, ALossMayBeNoNumber) {
  EXPECT_EQ(Post("/v1/step", R"({"step": 1, "loss": 0.25})"), 200u);
  EXPECT_EQ(node_.loss, 0.25);
  EXPECT_EQ(Post("/v1/step", R"({"step": 1, "loss": "nan"})"), 200u);
  EXPECT_TRUE(node_.loss && std::isnan(*node_.loss));
  EXPECT_EQ(Post("/v1/step", R"({"step": 1, "loss": "-inf"})"), 200u);
  EXPECT_EQ(node_.loss, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(Post("/v1/step", R"({"step": 1})"), 200u);
  EXPECT_EQ(node_.loss, std::nullopt);
  for (const char* body :
       {R"({"step": 1, "loss": "small"})", R"({"step": 1, "loss": NaN})", R"({"step": 1, "loss": []})"})
    EXPECT_EQ(Post("/v1/step", body), 400u) << body;
}

TEST_F(SdkApiTest, ACheckpointHasAStep) {
  EXPECT_EQ(Post("/v1/checkpoint", R"({"step": 120, "rank": 3})"), 200u);
  EXPECT_EQ(node_.checkpoints, (std::vector<std::pair<uint32_t, uint64_t>>{{3, 120}}));
  for (const char* body : {"{}", R"({"step": -1})", R"({"step": 1, "rank": "x"})", "[1]", ""}) {
    EXPECT_EQ(Post("/v1/checkpoint", body), 400u) << body;
  }
}

TEST_F(SdkApiTest, AMessageIsTakenAsItIsUnlessItIsEmptyOrLong) {
  EXPECT_EQ(Post("/v1/message", R"({"content": "loss is NaN\nat ü"})"), 200u);
  EXPECT_EQ(Post("/v1/message", R"({"content": ")" + std::string(kMessageMaxBytes, 'x') + "\"}"), 200u);
  EXPECT_EQ(node_.messages, (std::vector<std::string>{"loss is NaN\nat ü", std::string(kMessageMaxBytes, 'x')}));
  for (const std::string& body :
       {std::string("{}"), std::string(R"({"content": ""})"), std::string(R"({"content": 5})"),
        R"({"content": ")" + std::string(kMessageMaxBytes + 1, 'x') + "\"}"}) {
    EXPECT_EQ(Post("/v1/message", body), 400u) << body.substr(0, 50);
  }
  EXPECT_EQ(Post("/v1/message", R"({"content": "one more"})"), 429u) << "later it may be taken";
  EXPECT_EQ(last_.body, "{\"error\":\"too many\"}\n");
}

TEST_F(SdkApiTest, AnIntervalIsSecondsOrOffOrTheJobsOwn) {
  const auto get = [this] { return api_.Answer({"GET", "/v1/hang_interval", ""}, 0).body; };
  EXPECT_EQ(get(), "{\"seconds\":null}\n");
  EXPECT_EQ(Post("/v1/hang_interval", R"({"seconds": 180, "round": 2, "at_ns": 18000000000000000000})"), 200u);
  EXPECT_EQ(node_.hang, (HangSetting{.interval_ms = 180'000, .set_at_ns = 18'000'000'000'000'000'000u, .round = 2}));
  EXPECT_EQ(get(), "{\"round\":2,\"seconds\":180.0}\n");
  EXPECT_EQ(Post("/v1/hang_interval", R"({"seconds": 0.0001})"), 200u);
  EXPECT_EQ(node_.hang->interval_ms, 1000);
  EXPECT_EQ(Post("/v1/hang_interval", R"({"seconds": -1})"), 200u);
  EXPECT_EQ(node_.hang->interval_ms, kHangIntervalOffMs);
  EXPECT_EQ(get(), "{\"round\":0,\"seconds\":-1}\n");
  EXPECT_EQ(Post("/v1/hang_interval", R"({"seconds": null})"), 200u);
  EXPECT_EQ(node_.hang->interval_ms, kHangIntervalOwnMs);
  for (const char* body : {"{}", R"({"seconds": 0})", R"({"seconds": -2})", R"({"seconds": "180"})",
                           R"({"seconds": 1e10})", R"({"seconds": true})", R"({"seconds": 1, "round": -1})"}) {
    EXPECT_EQ(Post("/v1/hang_interval", body), 400u) << body;
  }
  EXPECT_EQ(node_.hang->interval_ms, kHangIntervalOwnMs);
}

TEST_F(SdkApiTest, WhoSpeaksMaySayWhoItIs) {
  EXPECT_EQ(Post("/v1/message", R"({"content": "x", "instance": "a-worker-3", "attempt": 4, "round": 5, "at_ns": 6})"),
            200u);
  EXPECT_EQ(node_.last_caller.pid, 7);
  EXPECT_EQ(node_.last_caller.instance, "a-worker-3");
  EXPECT_EQ(node_.last_caller.attempt, 4u);
  EXPECT_EQ(node_.last_caller.round, 5u);
  EXPECT_EQ(node_.last_caller.at_ns, 6u);
  for (const char* who : {R"("instance": 5)", R"("attempt": -1)", R"("attempt": 99999999)", R"("at_ns": 1.5)"}) {
    EXPECT_EQ(Post("/v1/message", std::string(R"({"content": "x", )") + who + "}"), 400u) << who;
  }
}

TEST_F(SdkApiTest, WhatIsNotThereAndWhatIsAskedForInTheWrongWay) {
  EXPECT_EQ(Post("/v1/nothing", "{}"), 404u);
  EXPECT_EQ(Post("/v1/status", "{}"), 405u);
  EXPECT_EQ(api_.Answer({"GET", "/v1/step", ""}, 7).status, 405u);
}

}  // namespace
}  // namespace aimaster::agent
