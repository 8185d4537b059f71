#include "notify/request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/character_border.h"
#include "notify/cloud_event.h"
#include "notify/signature.h"

namespace aimaster::notify {
namespace {

using nlohmann::json;

constexpr size_t kSecretShortest = 4;  // what is shorter occurs by chance
// Parts of an address are secrets and words ("hooks", "services", "redirect"), and nobody says which is which.
constexpr size_t kPartShortest = 8, kWordLongest = 11;

std::string Colour(EventSeverity severity) {
  switch (severity) {
    case EventSeverity::kInfo:
      return "#2e7d32";
    case EventSeverity::kWarning:
      return "#f9a825";
    case EventSeverity::kError:
      return "#c62828";
  }
  return "";
}

// What has a meaning in Slack's markup.
std::string SlackText(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

// What would turn a line of somebody's log into headings, links or emphasis.
std::string MarkdownText(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (std::string_view("\\`*_[]<>#|~").contains(c)) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// Lines "**label** text".
std::string Markdown(const Letter& letter, std::string_view line_end) {
  std::string text = "### " + MarkdownText(Headline(letter)) + std::string(line_end);
  for (const Fact& fact : BodyOf(letter)) {
    if (!fact.label.empty()) text += "**" + fact.label + "** ";
    text += MarkdownText(fact.text) + std::string(line_end);
  }
  return CutTo(text, kChatTextMaxBytes);
}

json SlackBody(const Letter& letter) {
  std::string text;
  for (const Fact& fact : BodyOf(letter)) {
    text += (text.empty() ? "" : "\n") + (fact.label.empty() ? "" : "*" + fact.label + "* ") + SlackText(fact.text);
  }
  return {{"text", SlackText(Headline(letter))},
          {"attachments", json::array({{{"color", Colour(letter.message.severity)},
                                        {"text", CutTo(text, kChatTextMaxBytes)},
                                        {"fallback", SlackText(letter.message.text)},
                                        {"mrkdwn_in", json::array({"text"})}}})}};
}

json DingTalkBody(const Letter& letter) {
  return {{"msgtype", "markdown"}, {"markdown", {{"title", Headline(letter)}, {"text", Markdown(letter, "\n\n")}}}};
}

json FeishuBody(const Letter& letter, const std::string& secret, Wall now) {
  json paragraphs = json::array();
  for (const Fact& fact : BodyOf(letter)) {
    const std::string text = fact.label.empty() ? fact.text : fact.label + ": " + fact.text;
    paragraphs.push_back(json::array({{{"tag", "text"}, {"text", text}}}));
  }
  json body{{"msg_type", "post"},
            {"content", {{"post", {{"zh_cn", {{"title", Headline(letter)}, {"content", std::move(paragraphs)}}}}}}}};
  if (!secret.empty()) {
    const std::string timestamp = std::to_string(ToMilliseconds(now.since_epoch) / 1000);
    body["timestamp"] = timestamp;
    body["sign"] = FeishuSign(secret, timestamp);
  }
  return body;
}

json WeComBody(const Letter& letter) {
  return {{"msgtype", "markdown"}, {"markdown", {{"content", Markdown(letter, "\n")}}}};
}

// RFC 2047, in pieces that are short enough and never end within a character.
std::string MailHeaderText(std::string_view text) {
  constexpr size_t kPieceMaxBytes = 42;
  if (std::ranges::all_of(text, [](unsigned char c) { return c >= ' ' && c < 0x7F; })) return std::string(text);
  std::string encoded;
  while (!text.empty()) {
    const size_t end = std::max<size_t>(1, CharacterBorder(text, kPieceMaxBytes));  // also of what is no text
    encoded += (encoded.empty() ? "" : "\r\n ") + ("=?UTF-8?B?" + Base64(text.substr(0, end)) + "?=");
    text.remove_prefix(end);
  }
  return encoded;
}

// "Mon, 30 Nov 2026 09:38:15 +0000"; strftime would use the language of the environment.
std::string MailDate(Wall time) {
  constexpr std::array kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::string text = FormatRfc3339(time);  // "2026-01-31T23:59:59.123Z"
  if (text.size() < 19) return text;
  const auto month = static_cast<size_t>(std::clamp(std::atoi(text.substr(5, 2).c_str()), 1, 12) - 1);
  const int64_t days = std::chrono::floor<std::chrono::days>(time.since_epoch).count();
  const auto day = static_cast<size_t>(((days + 4) % 7 + 7) % 7);  // 1970 began on a Thursday
  return std::string(kDays[day]) + ", " + text.substr(8, 2) + " " + kMonths[month] + " " + text.substr(0, 4) + " " +
         text.substr(11, 8) + " +0000";
}

bool LooksSecret(std::string_view part) {
  if (part.size() < kPartShortest) return false;
  return part.size() > kWordLongest || !std::ranges::all_of(part, [](char c) { return c >= 'a' && c <= 'z'; });
}

// In this order: of a secret that was cut, nobody would see any more that it is one.
std::string ShownPart(std::string_view text, const Revealed& revealed) {
  return Readable(WithoutSecrets(std::string(text), revealed), kAnswerShownBytes);
}

std::string Shown(std::string_view body, const Revealed& revealed) {
  while (!body.empty() && (body.back() == '\n' || body.back() == '\r')) body.remove_suffix(1);
  return body.empty() ? "" : ": " + ShownPart(body, revealed);
}

// The robots of chats answer 200 to everything, and say in the body what became of it.
Outcome ReadRobotAnswer(SinkType type, std::string_view body, const Revealed& revealed) {
  const json answer = json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) return NotDelivered("200, but no answer of a robot" + Shown(body, revealed));
  for (const char* name : {"errcode", "code", "StatusCode"}) {
    const auto code = answer.find(name);
    if (code == answer.end() || !code->is_number_integer()) continue;
    const auto number = code->get<int64_t>();
    if (number == 0) return {.delivered = true, .refused = false, .retry_after = {}, .answer = "200, code 0"};
    std::string words;
    for (const char* key : {"errmsg", "msg", "StatusMessage"}) {
      const auto text = answer.find(key);
      if (text != answer.end() && text->is_string()) words = text->get<std::string>();
    }
    Outcome outcome = NotDelivered("200, but code " + std::to_string(number) + Shown(words, revealed));
    // Too often; what these robots allow is counted by the minute.
    const bool too_often = type == SinkType::kDingTalk ? number == 130101 || number == 660026
                           : type == SinkType::kFeishu ? number == 9499 || number == 11232
                                                       : number == 45009;
    if (too_often) outcome.retry_after = milliseconds(60'000);
    return outcome;
  }
  return NotDelivered("200, but no code in the answer" + Shown(body, revealed));
}

// "a%2Fb" as "a/b": a server may answer with what it has understood.
std::string Unescaped(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const bool is_escape = text[i] == '%' && i + 2 < text.size() &&
                           std::from_chars(&text[i + 1], &text[i + 1] + 2, value, 16).ptr == &text[i + 1] + 2;
    plain += is_escape ? static_cast<char>(value) : text[i];
    if (is_escape) i += 2;
  }
  return plain;
}

// What is secret in an address: all behind the host, as one text; and its parts, since an answer may hold one alone, or
// write what stands between them in another way: the segments of the path, the values of the query, and who is named
// before the host, with the password.
std::vector<std::string> SecretsIn(std::string_view url) {
  std::vector<std::string> secrets;
  const size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return secrets;
  url.remove_prefix(scheme + 3);
  const auto add = [&](std::string_view part) {
    secrets.emplace_back(part);
    secrets.push_back(Unescaped(part));
  };
  const auto add_part = [&](std::string_view part) {
    if (LooksSecret(part)) add(part);
  };
  const std::string_view authority = url.substr(0, url.find_first_of("/?#"));
  if (const size_t at = authority.rfind('@'); at != std::string_view::npos) {
    const size_t colon = std::min(authority.find(':'), at);
    if (colon >= kPartShortest) add(authority.substr(0, colon));
    if (colon < at) add(authority.substr(colon + 1, at - colon - 1));  // a password, whatever it looks like
  }
  url.remove_prefix(authority.size());
  secrets.emplace_back(url);
  bool is_query = false;
  while (!url.empty()) {
    is_query |= url.front() == '?';
    url.remove_prefix(1);
    const std::string_view part = url.substr(0, url.find_first_of(is_query ? "&#" : "/?#"));
    const size_t equals = is_query ? part.find('=') : std::string_view::npos;
    add_part(equals == std::string_view::npos ? part : part.substr(equals + 1));
    url.remove_prefix(part.size());
  }
  return secrets;
}

}  // namespace

Result<Revealed> RevealAll(const Sink& sink) {
  Revealed revealed;
  for (const auto& [secret, to] :
       {std::pair(&sink.url, &revealed.url), {&sink.secret, &revealed.secret}, {&sink.password, &revealed.password}}) {
    Result<std::string> text = Reveal(*secret);
    if (!text) return std::unexpected(text.error());
    *to = std::move(*text);
  }
  for (const Header& header : sink.headers) {
    Result<std::string> text = Reveal(header.value);
    if (!text) return std::unexpected(text.error());
    if (text->find_first_of("\r\n") != std::string::npos) {
      return Fail(ErrorKind::kUsage, "the header " + header.name + " must be one line");
    }
    revealed.header_values.push_back(std::move(*text));
  }
  return revealed;
}

std::string WithoutSecrets(std::string text, const Revealed& revealed) {
  std::vector<std::string> secrets = {revealed.url, revealed.secret, revealed.password};
  secrets.insert(secrets.end(), revealed.header_values.begin(), revealed.header_values.end());
  std::ranges::move(SecretsIn(revealed.url), std::back_inserter(secrets));
  // The longest first: what is part of another would leave the rest of that one.
  std::ranges::sort(secrets, std::ranges::greater(), &std::string::size);
  for (const std::string& secret : secrets) {
    if (secret.size() < kSecretShortest) continue;
    for (size_t at = 0; (at = text.find(secret, at)) != std::string::npos;) text.replace(at, secret.size(), "***");
  }
  return text;
}

Result<HttpRequest> MakeHttpRequest(const Sink& sink, const Revealed& revealed, const Letter& letter, Wall now) {
  if (const Status good = CheckUrl(revealed.url); !good) return std::unexpected(good.error());
  HttpRequest request{.url = revealed.url, .headers = {"Content-Type: application/json; charset=utf-8"}, .body = ""};
  switch (sink.type) {
    case SinkType::kWebhook:
      request.headers = {"Content-Type: application/cloudevents+json; charset=utf-8"};
      request.body = OneLineOf(CloudEvent(letter));
      break;
    case SinkType::kSlack:
      request.body = OneLineOf(SlackBody(letter));
      break;
    case SinkType::kDingTalk:
      request.body = OneLineOf(DingTalkBody(letter));
      if (!revealed.secret.empty()) {
        request.url += (request.url.find('?') == std::string::npos ? "?" : "&") + DingTalkQuery(revealed.secret, now);
      }
      break;
    case SinkType::kFeishu:
      request.body = OneLineOf(FeishuBody(letter, revealed.secret, now));
      break;
    case SinkType::kWeCom:
      request.body = OneLineOf(WeComBody(letter));
      break;
    case SinkType::kSmtp:
    case SinkType::kCommand:
      return Fail(ErrorKind::kUsage, "it is no sink of HTTP");
  }
  if (sink.type == SinkType::kWebhook && !revealed.secret.empty()) {
    const Result<WebhookSignature> signature = SignWebhook(revealed.secret, IdOf(letter), request.body, now);
    if (!signature) return std::unexpected(signature.error());
    request.headers.push_back("webhook-id: " + signature->id);
    request.headers.push_back("webhook-timestamp: " + signature->timestamp);
    request.headers.push_back("webhook-signature: " + signature->signature);
  }
  for (size_t i = 0; i < sink.headers.size(); ++i) {
    request.headers.push_back(sink.headers[i].name + ": " + revealed.header_values.at(i));
  }
  return request;
}

std::string MakeMail(const Sink& sink, const Letter& letter) {
  std::string to;
  for (const std::string& address : sink.to) to += (to.empty() ? "" : ",\r\n ") + address;
  const size_t at = sink.from.find('@');
  const std::string domain = at == std::string::npos ? "localhost" : sink.from.substr(at + 1);
  std::string text = Headline(letter) + "\n\n";
  for (const Fact& fact : BodyOf(letter)) {
    text += fact.label.empty() ? fact.text + "\n" : fact.label + ": " + fact.text + "\n";
  }
  std::string mail = "From: " + sink.from + "\r\nTo: " + to + "\r\nSubject: " + MailHeaderText(Headline(letter)) +
                     "\r\nDate: " + MailDate(letter.message.time) + "\r\nMessage-ID: <" + IdOf(letter) + "@" + domain +
                     ">\r\nAuto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; "
                     "charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n";
  constexpr size_t kLine = 76;
  const std::string encoded = Base64(text);
  for (size_t i = 0; i < encoded.size(); i += kLine) mail += encoded.substr(i, kLine) + "\r\n";
  return mail;
}

CommandInput MakeCommandInput(const Letter& letter) {
  const Message& message = letter.message;
  const auto variable = [](const char* name, const std::string& value) {
    return std::string("AIMASTER_EVENT_") + name + "=" + value;
  };
  return {
      .standard_input = OneLineOf(CloudEvent(letter)) + "\n",
      .environment = {variable("ID", IdOf(letter)), variable("TYPE", message.type), variable("TITLE", message.title),
                      variable("SEVERITY", std::string(Name(message.severity))), variable("JOB_ID", message.job_id),
                      variable("JOB_NAME", message.job_name), variable("SUBJECT", message.subject),
                      variable("MESSAGE", message.text), variable("TIME", FormatRfc3339(message.time)),
                      variable("MORE", std::to_string(letter.more))}};
}

Outcome ReadHttpAnswer(SinkType type, long status, std::string_view body, int64_t retry_after_seconds,
                       const Revealed& revealed) {
  const bool is_robot = type == SinkType::kDingTalk || type == SinkType::kFeishu || type == SinkType::kWeCom;
  if (is_robot && status == 200) return ReadRobotAnswer(type, body, revealed);
  const std::string answer = std::to_string(status) + Shown(body, revealed);
  if (status >= 200 && status < 300) return {.delivered = true, .refused = false, .retry_after = {}, .answer = answer};
  if (status >= 300 && status < 400) {
    return NotDelivered(answer + " (a redirection, which is only followed with follow_redirects: true)");
  }
  // The message itself is what the other side does not take. All else may be put right while we wait.
  constexpr std::array<long, 5> kRefusals = {400, 413, 414, 415, 422};
  Outcome outcome = NotDelivered(answer, std::ranges::find(kRefusals, status) != kRefusals.end());
  if (retry_after_seconds > 0) {
    constexpr int64_t kMost = kRetryForMost.count() / 1000;
    outcome.retry_after = milliseconds(std::min(retry_after_seconds, kMost) * 1000);
  }
  return outcome;
}

Outcome ReadMailAnswer(const std::string& error, std::string_view reply, const Revealed& revealed) {
  const std::string said = ShownPart(reply, revealed);
  if (error.empty()) return {.delivered = true, .refused = false, .retry_after = {}, .answer = said};
  // Too large, or not what this server takes: it is the mail, and the ones behind it wait.
  const bool refused = reply.starts_with("552") || reply.starts_with("554");
  return NotDelivered(ShownPart(error, revealed) + (said.empty() ? "" : " (the server said: " + said + ")"), refused);
}

}  // namespace aimaster::notify
