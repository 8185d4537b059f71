#include "notify/plan.h"

#include <gtest/gtest.h>

#include <fstream>

#include "journal/temporary_directory.h"

namespace aimaster::notify {
namespace {

Plan PlanOf(Rule rule) {
  Plan plan;
  plan.sinks = {{.name = "ops", .type = SinkType::kWebhook}, {.name = "chat", .type = SinkType::kSlack}};
  plan.rules = {std::move(rule)};
  return plan;
}

TEST(PlanTest, ARuleChoosesByTypeJobSeverityAndSink) {
  const Plan plan = PlanOf({.events = {"aimaster.job.*", "aimaster.round.restarting"},
                            .jobs = {"llama-*"},
                            .severity = EventSeverity::kWarning,
                            .sinks = {"ops"}});
  EXPECT_TRUE(Wants(plan, "ops", "aimaster.job.failed", "llama-7b"));
  EXPECT_TRUE(Wants(plan, "ops", "aimaster.round.restarting", "llama-7b"));
  EXPECT_FALSE(Wants(plan, "ops", "aimaster.job.succeeded", "llama-7b")) << "only information";
  EXPECT_FALSE(Wants(plan, "ops", "aimaster.job.failed", "bert")) << "another job";
  EXPECT_FALSE(Wants(plan, "ops", "aimaster.node.lost", "llama-7b")) << "another event";
  EXPECT_FALSE(Wants(plan, "chat", "aimaster.job.failed", "llama-7b")) << "another sink";
}

TEST(PlanTest, EventsAboutNotificationsGoNowhere) {
  const Plan plan = PlanOf({.events = {"*"}, .jobs = {}, .severity = EventSeverity::kInfo, .sinks = {"ops"}});
  EXPECT_TRUE(Wants(plan, "ops", "aimaster.job.submitted", "any"));
  EXPECT_FALSE(Wants(plan, "ops", "aimaster.notify.gave_up", "any"));
}

TEST(PlanTest, APlanIsReadAsItWasWritten) {
  Plan plan =
      PlanOf({.events = {"*"}, .jobs = {"a", "b"}, .severity = EventSeverity::kError, .sinks = {"ops", "chat"}});
  plan.file = "notify.yaml";
  plan.drain = milliseconds(1500);
  plan.sinks[0].url = {.text = "https://example.org/", .file = ""};
  plan.sinks[0].secret = {.text = "", .file = "/etc/secret"};
  plan.sinks[0].headers = {{"X-Team", {.text = "ml", .file = ""}}};
  plan.sinks[0].follow_redirects = true;
  plan.sinks.push_back({.name = "mail",
                        .type = SinkType::kSmtp,
                        .ca_file = "/ca.pem",
                        .host = "mx",
                        .port = 465,
                        .security = MailSecurity::kTls,
                        .user = "u",
                        .password = {.text = "p", .file = ""},
                        .from = "a@b",
                        .to = {"c@d", "e@f"},
                        .timeout = milliseconds(100),
                        .retry_for = milliseconds(2),
                        .per_minute = 3});
  plan.sinks.push_back({.name = "page", .type = SinkType::kCommand, .command = {"page", "--all"}, .directory = "/d"});
  const Result<Plan> again = DecodePlan(EncodePlan(plan));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, plan);
}

TEST(PlanTest, DamageIsAnErrorAndNoCrash) {
  const std::string whole = EncodePlan(PlanOf({}));
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(DecodePlan(whole.substr(0, size)));
  EXPECT_FALSE(DecodePlan(R"({"sinks": [{"type": "pigeon"}]})"));
  const Result<Plan> newer = DecodePlan(R"({"version": 2})");
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().kind, ErrorKind::kVersion);
  const Result<Plan> none = DecodePlan(R"({"version": 0})");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "there is no version 0 of it");
}

TEST(PlanTest, WhatAFileMayNotSayAPlanMayNotEither) {
  const auto decode = [](void (*change)(Plan&)) {
    Plan plan = PlanOf({});
    change(plan);
    const Result<Plan> again = DecodePlan(EncodePlan(plan));
    return again ? "" : again.error().message;
  };
  EXPECT_EQ(decode([](Plan&) {}), "");
  EXPECT_EQ(decode([](Plan& plan) { plan.drain = milliseconds(-1); }), "drain_ms is out of bounds");
  EXPECT_EQ(decode([](Plan& plan) { plan.sinks[1].per_minute = 0; }), "per_minute of sink 'chat' is out of bounds");
  EXPECT_EQ(decode([](Plan& plan) { plan.sinks[0].timeout = milliseconds(-5); }),
            "timeout_ms of sink 'ops' is out of bounds");
  EXPECT_EQ(decode([](Plan& plan) { plan.sinks[0].retry_for = milliseconds::max(); }),
            "retry_for_ms of sink 'ops' is out of bounds");
  EXPECT_EQ(decode([](Plan& plan) { plan.sinks[0].type = SinkType::kCommand; }),
            "the number of words in the command of sink 'ops' is out of bounds");
  EXPECT_EQ(decode([](Plan& plan) { plan.sinks.resize(kSinksMax + 1); }), "the number of sinks is out of bounds");
}

TEST(PlanTest, ASecretInAFileIsReadWhenItIsNeeded) {
  const TemporaryDirectory directory;
  const std::string path = directory / "secret";
  const Secret secret{.text = "", .file = path};
  EXPECT_FALSE(Reveal(secret));
  std::ofstream(path) << "first\n";
  EXPECT_EQ(Reveal(secret).value(), "first");
  std::ofstream(path) << "second\r\n";
  EXPECT_EQ(Reveal(secret).value(), "second");
  std::ofstream(path) << "\n";
  EXPECT_FALSE(Reveal(secret)) << "an empty secret would be no signature";
}

TEST(PlanTest, APlaceShowsNothingThatIsSecret) {
  Sink sink{.name = "chat", .type = SinkType::kSlack};
  sink.url.text = "https://user:word@hooks.example.org:8443/services/T0/B0/key?token=abc#d";
  EXPECT_EQ(PlaceOf(sink), "https://hooks.example.org:8443");
  sink.url.text = "https://hooks.example.org?token=abc";
  EXPECT_EQ(PlaceOf(sink), "https://hooks.example.org");
  EXPECT_EQ(PlaceOf({.name = "m", .type = SinkType::kSmtp, .host = "mx", .port = 25}), "mx:25");
}

TEST(PlanTest, AnAddressIsOneOfHttp) {
  EXPECT_TRUE(CheckUrl("https://example.org/x"));
  EXPECT_TRUE(CheckUrl("http://[::1]:80"));
  for (const char* odd : {"", "ftp://example.org", "https://", "https:///x", "example.org", "https://a b",
                          "http://a\r\nX: y", "gopher://example.org"}) {
    EXPECT_FALSE(CheckUrl(odd)) << odd;
  }
}

}  // namespace
}  // namespace aimaster::notify
