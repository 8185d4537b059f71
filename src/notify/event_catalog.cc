#include "notify/event_catalog.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace aimaster::notify {
namespace {

using enum EventSeverity;

constexpr std::array kKinds = {
    EventKind{"aimaster.job.submitted", "Job Submitted", kInfo, "the job was taken in"},
    EventKind{"aimaster.job.note", "Job Note", kInfo, "a parameter has no effect, and the like"},
    EventKind{"aimaster.job.retryable-errors", "Retryable Errors", kInfo,
              "the program has named errors that are worth a restart"},
    EventKind{"aimaster.job.stopping", "Job Stopping", kInfo, "somebody stops the job"},
    EventKind{"aimaster.job.succeeded", "Job Succeeded", kInfo, "the job has ended well"},
    EventKind{"aimaster.job.failed", "Job Failed", kError, "the job has ended and was not restarted"},
    EventKind{"aimaster.job.stopped", "Job Stopped", kWarning, "the job was stopped by somebody, and has ended"},
    EventKind{"aimaster.round.started", "Round Started", kInfo, "all instances are being started"},
    EventKind{"aimaster.round.running", "Round Running", kInfo, "all ranks run"},
    EventKind{"aimaster.round.ready", "Round Ready", kInfo, "all ranks have shown a sign of life"},
    EventKind{"aimaster.round.restarting", "Automatic Fault Tolerance", kWarning, "the job is restarted"},
    EventKind{"aimaster.instance.restarting", "Automatic Fault Tolerance", kWarning,
              "one instance of an Async job is restarted"},
    EventKind{"aimaster.round.start_retried", "Start Retried", kWarning, "a start has failed, and is tried again"},
    EventKind{"aimaster.round.waiting", "Restart Delayed", kWarning, "the next round waits for a while first"},
    EventKind{"aimaster.instance.failed", "Instance Failed", kWarning, "a rank of an instance has failed"},
    EventKind{"aimaster.instance.waiting", "Instance Delayed", kWarning, "the next attempt waits for a while first"},
    EventKind{"aimaster.instance.restarted", "Instance Restarted", kInfo, "one instance of an Async job is back"},
    EventKind{"aimaster.instance.unkillable", "Instance Unkillable", kError, "processes do not go away"},
    EventKind{"aimaster.node.joined", "Node Joined", kInfo, "a node is connected"},
    EventKind{"aimaster.node.lost", "Node Lost", kWarning, "a node is not heard of any more"},
    EventKind{"aimaster.node.isolated", "Node Isolated", kWarning, "a suspect node is kept out of the job"},
    EventKind{"aimaster.node.kept", "Node Kept", kInfo, "a suspect node is used on, with the reason"},
    EventKind{"aimaster.node.denied", "Node Denied", kError, "there is no other node"},
    EventKind{"aimaster.hang.found", "Hang Found", kWarning, "all instances have been silent for too long"},
    EventKind{"aimaster.hang.exit-found", "Exit Hang Found", kWarning,
              "an instance has ended well, and the job does not end"},
    EventKind{"aimaster.hang.advancing", "Silent But Advancing", kInfo,
              "the job is silent, but its steps go on: it is left running"},
    EventKind{"aimaster.hang.stacks", "Call Stacks", kInfo, "call stacks of the ranks were taken, or could not be"},
    EventKind{"aimaster.hang.advice", "Hang Advice", kInfo, "another --job-hang-interval would suit the job"},
    EventKind{"aimaster.c4d.rank-comm-hang", "Rank Comm Hang", kWarning,
              "C4D: a rank hangs in the communication layer"},
    EventKind{"aimaster.c4d.rank-non-comm-hang", "Rank Non-Comm Hang", kWarning,
              "C4D: a rank hangs outside communication, and others wait for it"},
    EventKind{"aimaster.c4d.rank-comm-slow", "Rank Comm Slow", kInfo, "C4D: a rank is slow in the communication layer"},
    EventKind{"aimaster.c4d.rank-non-comm-slow", "Rank Non-Comm Slow", kInfo,
              "C4D: a rank is slow outside communication"},
    EventKind{"aimaster.c4d.collective-mismatch", "Collective Mismatch", kWarning,
              "C4D: ranks issued different operations, and wait for what never comes"},
    EventKind{"aimaster.c4d.cyclic-wait", "Cyclic Wait", kWarning, "C4D: ranks wait for each other in a circle"},
    EventKind{"aimaster.c4d.no-probe-data", "No Probe Data", kWarning,
              "C4D: nothing is known of the communication of some or all ranks"},
    EventKind{"aimaster.c4d.over", "C4D Finding Over", kInfo, "C4D: what was found holds no longer"},
    EventKind{"aimaster.master.started", "Master Restarted", kWarning, "the job's master was started again"},
    EventKind{"aimaster.master.engine-changed", "Engine Changed", kInfo,
              "this version would have decided something otherwise"},
    EventKind{"aimaster.custom.message", "Custom Message", kWarning, "the program has sent a message by the SDK"},
};

bool EqualInAnyCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  });
}

const EventKind* Find(std::string_view type) {
  const auto found = std::ranges::find(kKinds, type, &EventKind::type);
  return found == kKinds.end() ? nullptr : &*found;
}

}  // namespace

std::string_view Name(EventSeverity severity) {
  switch (severity) {
    case kInfo:
      return "info";
    case kWarning:
      return "warning";
    case kError:
      return "error";
  }
  return "";
}

std::optional<EventSeverity> ParseEventSeverity(std::string_view name) {
  for (const EventSeverity severity : {kInfo, kWarning, kError}) {
    if (Name(severity) == name) return severity;
  }
  return std::nullopt;
}

std::span<const EventKind> EventKinds() { return kKinds; }

EventSeverity SeverityOf(std::string_view type) {
  if (const EventKind* kind = Find(type)) return kind->severity;
  return type.ends_with(".failed") ? kError : kInfo;  // of another version
}

std::string TitleOf(std::string_view type) {
  if (const EventKind* kind = Find(type)) return std::string(kind->title);
  // Of another version: "aimaster.node.given_back" → "Node Given Back"
  constexpr std::string_view kPrefix = "aimaster.";
  if (type.starts_with(kPrefix)) type.remove_prefix(kPrefix.size());
  std::string title;
  bool begins = true;
  for (const char c : type) {
    const bool gap = c == '.' || c == '_' || c == '-';
    title += gap ? ' ' : begins ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    begins = gap;
  }
  return title;
}

bool IsAboutNotifications(std::string_view type) { return type.starts_with("aimaster.notify."); }

std::vector<std::string> TypesFor(std::string_view written) {
  std::vector<std::string> types;
  for (const EventKind& kind : kKinds) {
    if (EqualInAnyCase(kind.title, written)) types.emplace_back(kind.type);
  }
  if (!types.empty()) return types;
  const std::string glob(written);
  const bool known =
      std::ranges::any_of(kKinds, [&](const EventKind& kind) { return GlobMatches(glob, std::string(kind.type)); });
  if (known) types.push_back(glob);
  return types;
}

std::vector<std::string_view> KnownEventNames() {
  std::vector<std::string_view> names;
  for (const EventKind& kind : kKinds) {
    names.push_back(kind.type);
    names.push_back(kind.title);
  }
  return names;
}

bool GlobMatches(const std::string& glob, const std::string& text) {
  return fnmatch(glob.c_str(), text.c_str(), 0) == 0;
}

}  // namespace aimaster::notify
