#include "notify/request.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "notify/signature.h"

namespace aimaster::notify {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr Wall kNow{1'700'000'000'123ms};

Letter Restart() {
  Letter letter;
  letter.message = {.number = 17,
                    .time = kNow,
                    .type = "aimaster.round.restarting",
                    .title = "Automatic Fault Tolerance",
                    .severity = EventSeverity::kWarning,
                    .job_id = "dlc0123456789abc",
                    .job_name = "nightly",
                    .subject = "dlc0123456789abc-worker-2",
                    .text = "restart 1 of at most 3: <script> & *bold*",
                    .facts = {{"first", "rank 2: killed by SIGKILL (9)"},
                              {"told by", "CUDA error: uncorrectable ECC error"},
                              {"decision", "Restart"}},
                    .look = "aimaster explain dlc0123456789abc"};
  letter.first = letter.last = 17;
  return letter;
}

Letter Storm() {
  Letter letter = Restart();
  letter.first = 10;
  letter.last = 130;
  letter.more = 120;
  letter.kinds = {{"Instance Failed", 100}, {"Node Lost", 20}};
  return letter;
}

HttpRequest Request(SinkType type, const Revealed& revealed, const Letter& letter, std::vector<Header> headers = {}) {
  const Result<HttpRequest> request =
      MakeHttpRequest({.name = "s", .type = type, .headers = std::move(headers)}, revealed, letter, kNow);
  EXPECT_TRUE(request) << (request ? "" : request.error().message);
  return request.value_or(HttpRequest());
}

const Revealed kPlain{.url = "https://example.org/hook?a=b", .secret = "", .password = "", .header_values = {}};
const Revealed kSigned{.url = "https://example.org/hook?a=b", .secret = "SECtest", .password = "", .header_values = {}};

TEST(RequestTest, AWebhookGetsACloudEventAndASignature) {
  Revealed revealed = kSigned;
  revealed.header_values = {"ml"};
  const HttpRequest request = Request(SinkType::kWebhook, revealed, Restart(), {{"X-Team", {}}});
  const json event = json::parse(request.body);
  EXPECT_EQ(event["specversion"], "1.0");
  EXPECT_EQ(event["id"], "dlc0123456789abc-17");
  EXPECT_EQ(event["source"], "/aimaster/jobs/dlc0123456789abc");
  EXPECT_EQ(event["type"], "aimaster.round.restarting");
  EXPECT_EQ(event["time"], "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(event["data"]["told_by"], "CUDA error: uncorrectable ECC error");
  EXPECT_EQ(event["data"]["look"], "aimaster explain dlc0123456789abc");
  const auto has = [&](const std::string& header) { return std::ranges::count(request.headers, header) == 1; };
  EXPECT_TRUE(has("Content-Type: application/cloudevents+json; charset=utf-8"));
  EXPECT_TRUE(has("webhook-id: dlc0123456789abc-17"));
  EXPECT_TRUE(has("webhook-timestamp: 1700000000"));
  const Result<WebhookSignature> expected = SignWebhook("SECtest", "dlc0123456789abc-17", request.body, kNow);
  EXPECT_TRUE(has("webhook-signature: " + expected->signature));
  EXPECT_TRUE(has("X-Team: ml"));
}

TEST(RequestTest, ADigestTellsOneEventInWholeAndCountsTheOthers) {
  const json event = json::parse(Request(SinkType::kWebhook, kPlain, Storm()).body);
  EXPECT_EQ(event["id"], "dlc0123456789abc-10-130");
  EXPECT_EQ(event["type"], "aimaster.notify.digest");
  EXPECT_EQ(event["data"]["events"], 121);
  EXPECT_EQ(event["data"]["message"], "and 120 more: 100 × Instance Failed, 20 × Node Lost");
  EXPECT_EQ(event["data"]["event"]["data"]["number"], 17);
}

TEST(RequestTest, SlackGetsItsMarkupWithoutMeaningInForeignText) {
  const json body = json::parse(Request(SinkType::kSlack, kPlain, Storm()).body);
  EXPECT_EQ(body["text"], "[warning] Automatic Fault Tolerance: nightly (dlc0123456789abc) and 120 more");
  const auto text = body["attachments"][0]["text"].get<std::string>();
  EXPECT_NE(text.find("&lt;script&gt; &amp; *bold*"), std::string::npos) << text;
  EXPECT_NE(text.find("*first* rank 2: killed by SIGKILL (9)"), std::string::npos) << text;
  EXPECT_NE(text.find("and 120 more: 100 × Instance Failed"), std::string::npos) << text;
}

TEST(RequestTest, DingTalkIsSignedInItsAddress) {
  const HttpRequest request = Request(SinkType::kDingTalk, kSigned, Restart());
  EXPECT_EQ(request.url, "https://example.org/hook?a=b&" + DingTalkQuery("SECtest", kNow));
  const json body = json::parse(request.body);
  EXPECT_EQ(body["msgtype"], "markdown");
  const auto text = body["markdown"]["text"].get<std::string>();
  EXPECT_NE(text.find("\\<script\\> & \\*bold\\*"), std::string::npos) << text;
  EXPECT_EQ(Request(SinkType::kDingTalk, {.url = "https://a/b", .secret = "s"}, Restart()).url,
            "https://a/b?" + DingTalkQuery("s", kNow));
  EXPECT_EQ(Request(SinkType::kDingTalk, kPlain, Restart()).url, kPlain.url) << "unsigned where there is no secret";
}

TEST(RequestTest, FeishuIsSignedInItsBody) {
  const json body = json::parse(Request(SinkType::kFeishu, kSigned, Restart()).body);
  EXPECT_EQ(body["timestamp"], "1700000000");
  EXPECT_EQ(body["sign"], FeishuSign("SECtest", "1700000000"));
  EXPECT_EQ(body["content"]["post"]["zh_cn"]["title"],
            "[warning] Automatic Fault Tolerance: nightly (dlc0123456789abc)");
  EXPECT_FALSE(json::parse(Request(SinkType::kFeishu, kPlain, Restart()).body).contains("sign"));
}

TEST(RequestTest, WeComGetsNoMoreThanItTakes) {
  Letter letter = Restart();
  for (int i = 0; i < 20; ++i) letter.message.facts.push_back({"line", std::string(900, '*')});
  const json body = json::parse(Request(SinkType::kWeCom, kPlain, letter).body);
  EXPECT_LE(body["markdown"]["content"].get<std::string>().size(), kWeComMaxBytes);
}

TEST(RequestTest, AMailHasHeadersOfOneLineAndATextThatIsUtf8) {
  Letter letter = Restart();
  letter.message.job_name = "训练-nightly-with-a-long-name-that-goes-on-and-on";
  const std::string mail =
      MakeMail({.name = "m", .type = SinkType::kSmtp, .from = "a@b.c", .to = {"d@e.f", "g@h.i"}}, letter);
  EXPECT_TRUE(mail.starts_with("From: a@b.c\r\nTo: d@e.f,\r\n g@h.i\r\nSubject: =?UTF-8?B?")) << mail;
  EXPECT_NE(mail.find("\r\nDate: Tue, 14 Nov 2023 22:13:20 +0000\r\n"), std::string::npos) << mail;
  EXPECT_NE(mail.find("\r\nMessage-ID: <dlc0123456789abc-17@b.c>\r\n"), std::string::npos);
  for (size_t begin = 0, end; (end = mail.find("\r\n", begin)) != std::string::npos; begin = end + 2) {
    EXPECT_LE(end - begin, 78u) << mail.substr(begin, end - begin);
  }
}

TEST(RequestTest, ACommandIsToldInBothWays) {
  const CommandInput input = MakeCommandInput(Restart());
  EXPECT_EQ(json::parse(input.standard_input)["id"], "dlc0123456789abc-17");
  EXPECT_EQ(std::ranges::count(input.environment, "AIMASTER_EVENT_TITLE=Automatic Fault Tolerance"), 1);
  EXPECT_EQ(std::ranges::count(input.environment, "AIMASTER_EVENT_JOB_NAME=nightly"), 1);
}

TEST(RequestTest, AnAnswerSaysWhetherAnotherTryIsWorthIt) {
  const auto read = [](long status, std::string_view body = "", int64_t retry_after = 0) {
    return ReadHttpAnswer(SinkType::kWebhook, status, body, retry_after, kPlain);
  };
  EXPECT_TRUE(read(200, "ok").delivered);
  EXPECT_TRUE(read(204).delivered);
  EXPECT_FALSE(read(500, "oops").delivered);
  EXPECT_FALSE(read(500).refused);
  EXPECT_EQ(read(500, "oops\n").answer, "500: oops");
  EXPECT_EQ(read(429, "", 7).retry_after, milliseconds(7000));
  EXPECT_EQ(read(429, "", INT64_MAX).retry_after, kRetryForMost);
  EXPECT_TRUE(read(400).refused);
  EXPECT_FALSE(read(401).refused) << "a password can be set right";
  EXPECT_FALSE(read(302).delivered);
  EXPECT_LE(read(500, std::string(100'000, 'x')).answer.size(), 400u);
  EXPECT_EQ(read(500, "\x1b[2J").answer, "500:  [2J");
}

TEST(RequestTest, ARobotSaysInItsAnswerWhatBecameOfTheMessage) {
  EXPECT_TRUE(ReadHttpAnswer(SinkType::kDingTalk, 200, R"({"errcode":0,"errmsg":"ok"})", 0, kPlain).delivered);
  EXPECT_TRUE(ReadHttpAnswer(SinkType::kFeishu, 200, R"({"code":0,"msg":"success"})", 0, kPlain).delivered);
  EXPECT_TRUE(ReadHttpAnswer(SinkType::kWeCom, 200, R"({"errcode":0})", 0, kPlain).delivered);
  const Outcome sign =
      ReadHttpAnswer(SinkType::kDingTalk, 200, R"({"errcode":310000,"errmsg":"sign not match"})", 0, kPlain);
  EXPECT_FALSE(sign.delivered);
  EXPECT_EQ(sign.answer, "200, but code 310000: sign not match");
  EXPECT_EQ(ReadHttpAnswer(SinkType::kDingTalk, 200, R"({"errcode":130101})", 0, kPlain).retry_after,
            milliseconds(60'000));
  EXPECT_EQ(ReadHttpAnswer(SinkType::kWeCom, 200, R"({"errcode":45009})", 0, kPlain).retry_after, milliseconds(60'000));
  EXPECT_FALSE(ReadHttpAnswer(SinkType::kWeCom, 200, "<html>", 0, kPlain).delivered);
  EXPECT_FALSE(ReadHttpAnswer(SinkType::kFeishu, 200, "{}", 0, kPlain).delivered);
  EXPECT_TRUE(ReadHttpAnswer(SinkType::kSlack, 200, "ok", 0, kPlain).delivered);
}

TEST(RequestTest, AMailServerMaySayThatTheMailIsAtFault) {
  const Outcome large = ReadMailAnswer("failed", "552 5.3.4 too large", kPlain);
  EXPECT_FALSE(large.delivered);
  EXPECT_TRUE(large.refused);
  EXPECT_EQ(large.answer, "failed (the server said: 552 5.3.4 too large)");
  EXPECT_TRUE(ReadMailAnswer("failed", "554 5.6.0 no", kPlain).refused);
  EXPECT_FALSE(ReadMailAnswer("failed", "550 nobody of that name", kPlain).refused);
  EXPECT_FALSE(ReadMailAnswer("failed", "452 full", kPlain).refused);
  EXPECT_FALSE(ReadMailAnswer("failed", "", kPlain).refused);
  EXPECT_TRUE(ReadMailAnswer("", "250 taken", kPlain).delivered);
}

TEST(RequestTest, WhatAServerRepeatsOfASecretIsNotShown) {
  const Revealed revealed{
      .url = "https://example.org/T0/B0/key", .secret = "hunter2", .password = "", .header_values = {"Bearer abcdef"}};
  EXPECT_EQ(WithoutSecrets("no such hook /T0/B0/key (hunter2, Bearer abcdef, hunter2)", revealed),
            "no such hook *** (***, ***, ***)");
}

TEST(RequestTest, APartOfAnAddressThatAServerRepeatsIsNotShown) {
  const Revealed revealed{
      .url = "https://somebody:pass%40word@example.org/hooks/key-of-ours/x?v=1&access_token=0123456789",
      .secret = "",
      .password = "",
      .header_values = {}};
  for (const auto& [said, shown] : std::initializer_list<std::pair<const char*, const char*>>{
           {"invalid access_token 0123456789", "invalid access_token ***"},
           {"/hooks/key-of-ours/x?v=1&amp;access_token=0123456789", "/hooks/***/x?v=1&amp;access_token=***"},
           {"who is somebody with pass@word?", "who is *** with ***?"},
           {"pass%40word", "***"},
           {"hooks of example.org", "hooks of example.org"}}) {  // too short, and the host is no secret
    EXPECT_EQ(WithoutSecrets(said, revealed), shown);
  }
  EXPECT_EQ(WithoutSecrets("a redirection of services", {.url = "https://a/services/redirect"}),
            "a redirection of services")
      << "words are none";
  EXPECT_EQ(WithoutSecrets("no 0123456789", {.url = "https://a?t=0123456789"}), "no ***");
  EXPECT_EQ(WithoutSecrets("no 0123456789, 0123456789abc",
                           {.url = "https://a/0123456789", .secret = "", .password = "0123456789abc"}),
            "no ***, ***")
      << "the longer one is not cut by the shorter one";
}

TEST(RequestTest, ASecretThatACutGoesThroughIsNotShown) {
  const std::string secret = "0123456789abcdefghijklmnopqrstuvwxyz";
  const Revealed revealed{.url = "https://a", .secret = secret, .password = "", .header_values = {}};
  for (size_t before = kAnswerShownBytes - secret.size(); before < kAnswerShownBytes; ++before) {
    const std::string said = std::string(before, 'x') + secret + std::string(100, 'y');
    for (const Outcome& outcome :
         {ReadHttpAnswer(SinkType::kWebhook, 500, said, 0, revealed),
          ReadHttpAnswer(SinkType::kDingTalk, 200, json{{"errcode", 1}, {"errmsg", said}}.dump(), 0, revealed),
          ReadMailAnswer("failed", said, revealed), ReadMailAnswer(said, "", revealed)}) {
      EXPECT_EQ(outcome.answer.find("0123"), std::string::npos) << outcome.answer;
    }
  }
}

}  // namespace
}  // namespace aimaster::notify
