#include "notify/plan.h"

#include <algorithm>
#include <utility>

#include "core/quote.h"
#include "journal/files.h"
#include "journal/json_fields.h"

namespace aimaster::notify {
namespace {

constexpr uint32_t kPlanVersion = 1;

struct StoredPlan {
  uint32_t version = kPlanVersion;
  Plan plan;
};

bool AnyMatches(const std::vector<std::string>& globs, const std::string& text) {
  return std::ranges::any_of(globs, [&](const std::string& glob) { return GlobMatches(glob, text); });
}

std::string_view WithoutUser(std::string_view authority) {
  const size_t at = authority.rfind('@');
  return at == std::string_view::npos ? authority : authority.substr(at + 1);
}

// "https://hooks.example.org:8443" of an address; what stands behind may be a key.
std::string OriginOf(std::string_view url) {
  const size_t begin = url.find("://");
  if (begin == std::string_view::npos) return "";
  const std::string_view rest = url.substr(begin + 3);
  return std::string(url.substr(0, begin + 3)) + std::string(WithoutUser(rest.substr(0, rest.find_first_of("/?#"))));
}

}  // namespace

template <typename V>
void Fields(V& v, Secret& x) {
  v("text", x.text);
  v("file", x.file);
}
template <typename V>
void Fields(V& v, Header& x) {
  v("name", x.name);
  v("value", x.value);
}
template <typename V>
void Fields(V& v, Sink& x) {
  v("name", x.name);
  v("type", x.type);
  v("url", x.url);
  v("secret", x.secret);
  v("headers", x.headers);
  v("follow_redirects", x.follow_redirects);
  v("ca_file", x.ca_file);
  v("host", x.host);
  v("port", x.port);
  v("security", x.security);
  v("user", x.user);
  v("password", x.password);
  v("from", x.from);
  v("to", x.to);
  v("command", x.command);
  v("directory", x.directory);
  v("timeout_ms", x.timeout);
  v("retry_for_ms", x.retry_for);
  v("per_minute", x.per_minute);
}
template <typename V>
void Fields(V& v, Rule& x) {
  v("events", x.events);
  v("jobs", x.jobs);
  v("severity", x.severity);
  v("sinks", x.sinks);
}
namespace {
template <typename V>
void Fields(V& v, StoredPlan& x) {
  v("version", x.version);
  v("file", x.plan.file);
  v("drain_ms", x.plan.drain);
  v("sinks", x.plan.sinks);
  v("rules", x.plan.rules);
  v("variables", x.plan.variables);
}
}  // namespace

std::string_view Name(SinkType type) {
  switch (type) {
    case SinkType::kWebhook:
      return "webhook";
    case SinkType::kSlack:
      return "slack";
    case SinkType::kDingTalk:
      return "dingtalk";
    case SinkType::kFeishu:
      return "feishu";
    case SinkType::kWeCom:
      return "wecom";
    case SinkType::kSmtp:
      return "smtp";
    case SinkType::kCommand:
      return "command";
  }
  return "";
}

std::optional<SinkType> ParseSinkType(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(SinkType::kCommand); ++i) {
    if (Name(static_cast<SinkType>(i)) == name) return static_cast<SinkType>(i);
  }
  return std::nullopt;
}

std::string_view Name(MailSecurity security) {
  switch (security) {
    case MailSecurity::kNone:
      return "none";
    case MailSecurity::kStartTls:
      return "starttls";
    case MailSecurity::kTls:
      return "tls";
  }
  return "";
}

std::optional<MailSecurity> ParseMailSecurity(std::string_view name) {
  for (const MailSecurity security : {MailSecurity::kNone, MailSecurity::kStartTls, MailSecurity::kTls}) {
    if (Name(security) == name) return security;
  }
  return std::nullopt;
}

bool Wants(const Plan& plan, const std::string& sink, const std::string& event_type, const std::string& job_name) {
  if (IsAboutNotifications(event_type)) return false;
  return std::ranges::any_of(plan.rules, [&](const Rule& rule) {
    return std::ranges::find(rule.sinks, sink) != rule.sinks.end() && SeverityOf(event_type) >= rule.severity &&
           AnyMatches(rule.events, event_type) && (rule.jobs.empty() || AnyMatches(rule.jobs, job_name));
  });
}

namespace {

// What a notify file may not say either: a plan may have been changed by hand. Empty: nothing.
std::string OutOfBounds(const Plan& plan) {
  const auto is_in = [](auto value, auto least, auto most) { return least <= value && value <= most; };
  if (!is_in(plan.drain, kDrainLeast, kDrainMost)) return "drain_ms";
  if (plan.sinks.size() > kSinksMax) return "the number of sinks";
  if (plan.rules.size() > kRulesMax) return "the number of rules";
  for (const Sink& sink : plan.sinks) {
    const std::string of = " of sink " + Quoted(sink.name);
    if (!is_in(sink.timeout, kTimeoutLeast, kTimeoutMost)) return "timeout_ms" + of;
    if (!is_in(sink.retry_for, kRetryForLeast, kRetryForMost)) return "retry_for_ms" + of;
    if (!is_in(sink.per_minute, kPerMinuteLeast, kPerMinuteMost)) return "per_minute" + of;
    const size_t words = sink.type == SinkType::kCommand ? sink.command.size() : 1;
    if (!is_in(words, size_t{1}, kItemsMax)) return "the number of words in the command" + of;
  }
  return "";
}

}  // namespace

std::string EncodePlan(const Plan& plan) { return ToText(ToJson(StoredPlan{.plan = plan})); }

Result<Plan> DecodePlan(std::string_view text) {
  Result<StoredPlan> stored = FromText<StoredPlan>(text);
  if (!stored) return Fail(ErrorKind::kUsage, stored.error().message);
  if (stored->version > kPlanVersion) {
    return Fail(ErrorKind::kVersion, "it was written by a newer version of aimaster; use that version");
  }
  if (stored->version < kPlanVersion) {
    return Fail(ErrorKind::kUsage, "there is no version " + std::to_string(stored->version) + " of it");
  }
  if (const std::string what = OutOfBounds(stored->plan); !what.empty()) {
    return Fail(ErrorKind::kUsage, what + " is out of bounds");
  }
  return std::move(stored->plan);
}

Result<Plan> ReadPlan(const JobDirectory& job_directory) {
  const std::filesystem::path path = job_directory.notify_plan();
  const Result<std::string> text = ReadFile(path, kPlanMaxBytes);
  if (!text) return std::unexpected(text.error());
  Result<Plan> plan = DecodePlan(*text);
  if (!plan) return Fail(plan.error().kind, path.string() + ": " + plan.error().message);
  return plan;
}

Result<std::string> Reveal(const Secret& secret) {
  if (secret.file.empty()) return secret.text;
  Result<std::string> text = ReadFile(secret.file, kSecretMaxBytes);
  if (!text) return Fail(ErrorKind::kEnvironment, "the secret can't be read: " + text.error().message);
  while (!text->empty() && (text->back() == '\n' || text->back() == '\r' || text->back() == ' ')) text->pop_back();
  if (text->empty()) return Fail(ErrorKind::kEnvironment, "the secret is empty: " + secret.file);
  return text;
}

std::string PlaceOf(const Sink& sink) {
  if (sink.type == SinkType::kSmtp) return sink.host + ":" + std::to_string(sink.port);
  if (sink.type == SinkType::kCommand) return sink.command.empty() ? "" : sink.command.front();
  const Result<std::string> url = Reveal(sink.url);
  return url ? OriginOf(*url) : "";
}

Status CheckUrl(std::string_view url) {
  if (!url.starts_with("http://") && !url.starts_with("https://")) {
    return Fail(ErrorKind::kUsage, "an address begins with https:// or http://");
  }
  if (OriginOf(url).ends_with("://")) return Fail(ErrorKind::kUsage, "the address has no host");
  const bool is_line = std::ranges::none_of(
      url, [](char c) { return static_cast<unsigned char>(c) <= ' ' || static_cast<unsigned char>(c) == 0x7F; });
  if (!is_line) return Fail(ErrorKind::kUsage, "the address holds blanks or control characters");
  return {};
}

}  // namespace aimaster::notify
