// EventCatalog: the kinds of events that there are, what people call them, and how bad each is. Types are for programs
// and never change; titles are for people who choose what they want to hear of, and the same title may stand for
// several types.
//
// To let the engine put a severity on each event was rejected: it decides, and whom to wake for it is another question.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace aimaster::notify {

enum class EventSeverity { kInfo, kWarning, kError };
std::string_view Name(EventSeverity severity);  // "warning"
std::optional<EventSeverity> ParseEventSeverity(std::string_view name);

struct EventKind {
  std::string_view type;   // "aimaster.round.restarting"
  std::string_view title;  // "Automatic Fault Tolerance"
  EventSeverity severity{};
  std::string_view help;  // when it happens
};
std::span<const EventKind> EventKinds();

// Of any type: one that the catalog does not name gets what its last word says.
EventSeverity SeverityOf(std::string_view type);
std::string TitleOf(std::string_view type);

// Our own events about notifications are told in the journal and the log, and sent to nobody: a sink that fails would
// cause messages about itself without end.
bool IsAboutNotifications(std::string_view type);

// What somebody wrote to choose events: a title in any case, a type, or a glob over types. The globs over types that it
// stands for; empty: it can't match any event.
std::vector<std::string> TypesFor(std::string_view written);
// All that may be written, but for globs.
std::vector<std::string_view> KnownEventNames();

// fnmatch: * and ? stand for any characters, dots too.
bool GlobMatches(const std::string& glob, const std::string& text);

}  // namespace aimaster::notify
