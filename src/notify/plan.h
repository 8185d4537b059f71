// Plan: a notify file, read and checked: which events of which jobs go to which sinks. A job keeps the plan that it was
// submitted with as notify.json in its directory, whatever becomes of the file:
//
//   {"version": 1, "file": "/home/me/notify.yaml", "drain_ms": 30000, "sinks": […], "rules": […],
//    "variables": ["HOOK_SECRET"]}
//
// It may hold secrets, and what variables held when the job was submitted, since whoever resumes it has others: so it
// is its owner's alone (0600), like the job's token. A secret that was given as a file stays one, and is read at each
// try.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "journal/job_directory.h"
#include "notify/event_catalog.h"
#include "notify/limits.h"

namespace aimaster::notify {

// Text that nobody should see, or the file that holds it.
struct Secret {
  std::string text;
  std::string file;  // absolute; empty: the text is all
  bool is_set() const { return !text.empty() || !file.empty(); }
  bool operator==(const Secret&) const = default;
};

enum class SinkType { kWebhook, kSlack, kDingTalk, kFeishu, kWeCom, kSmtp, kCommand };
std::string_view Name(SinkType type);  // "dingtalk"
std::optional<SinkType> ParseSinkType(std::string_view name);

enum class MailSecurity { kNone, kStartTls, kTls };
std::string_view Name(MailSecurity security);  // "starttls"
std::optional<MailSecurity> ParseMailSecurity(std::string_view name);

struct Header {
  std::string name;
  Secret value;
  bool operator==(const Header&) const = default;
};

struct Sink {
  std::string name;
  SinkType type{};
  // All but smtp and command.
  Secret url;
  Secret secret;  // signs; none: unsigned
  std::vector<Header> headers;
  bool follow_redirects = false;
  std::string ca_file;  // absolute; empty: the system's authorities
  // smtp
  std::string host;
  uint16_t port = 0;
  MailSecurity security = MailSecurity::kStartTls;
  std::string user;
  Secret password;
  std::string from;
  std::vector<std::string> to;
  // command
  std::vector<std::string> command;
  std::string directory;  // where it runs; absolute

  milliseconds timeout = kTimeoutDefault;     // of one try
  milliseconds retry_for = kRetryForDefault;  // then a message is given up
  int per_minute = kPerMinuteDefault;         // messages; what is more is told in a digest
  bool operator==(const Sink&) const = default;
};

struct Rule {
  std::vector<std::string> events;                // globs over types
  std::vector<std::string> jobs;                  // globs over names; empty: all
  EventSeverity severity = EventSeverity::kInfo;  // at least
  std::vector<std::string> sinks;
  bool operator==(const Rule&) const = default;
};

struct Plan {
  std::string file;  // where it was written
  milliseconds drain = kDrainDefault;
  std::vector<Sink> sinks;
  std::vector<Rule> rules;
  std::vector<std::string> variables;  // that secrets were taken from: no business of the job's processes
  bool operator==(const Plan&) const = default;
};

bool Wants(const Plan& plan, const std::string& sink, const std::string& event_type, const std::string& job_name);

std::string EncodePlan(const Plan& plan);
// Takes any bytes. kUsage: they are no plan; kVersion: they are one of a newer version.
Result<Plan> DecodePlan(std::string_view text);
// Of a job; kNotFound: it has none.
Result<Plan> ReadPlan(const JobDirectory& job_directory);

// What a secret is at this moment. The error names the file, and nothing of what is in it.
Result<std::string> Reveal(const Secret& secret);

// Where a sink sends to, without what is secret: "https://hooks.example.org", "smtp.example.org:587", "page-me".
std::string PlaceOf(const Sink& sink);
// An address that we may send to: http or https, with a host, and nothing that would break a line.
Status CheckUrl(std::string_view url);

}  // namespace aimaster::notify
