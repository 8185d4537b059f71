// Message: what people are told of one event, before anybody knows by which way. A person who reads it at night on a
// telephone should know which job, what failed first and where, what was decided, what to do, and how to look.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/job_spec.h"
#include "core/time.h"
#include "journal/job_reader.h"
#include "notify/event_catalog.h"

namespace aimaster::notify {

struct Fact {
  std::string label;  // "first", "where", "told by", "decision", "advice"
  std::string text;   // one line
};

struct Message {
  int64_t number = 0;  // the event's, within its job
  Wall time;
  std::string type, title;
  EventSeverity severity{};
  std::string job_id, job_name;
  std::string subject;  // an instance or node; empty: the job
  std::string text;     // one line
  std::vector<Fact> facts;
  std::string look;  // "aimaster explain dlc…"
};

// What the event itself says.
Message MessageOf(const JobSpec& spec, const NumberedEvent& event);

// One message to one sink: an event in whole, and how many others stand behind it.
struct Letter {
  Message message;
  int64_t first = 0, last = 0;                        // numbers of the events that it tells of
  size_t more = 0;                                    // beside the message's own
  std::vector<std::pair<std::string, size_t>> kinds;  // of those: title and how many, the most frequent first
};

// The same however often it is sent, so that a receiver can tell a repetition: "dlc…-17", or "dlc…-17-137" of a digest.
std::string IdOf(const Letter& letter);
// "[warning] Automatic Fault Tolerance: nightly (dlc…)"
std::string Headline(const Letter& letter);
// "and 120 more: 100 × Instance Failed, 20 × Node Lost"; empty: it stands alone.
std::string MoreText(const Letter& letter);
// "first" and its text, and so on: everything below the headline, the event's own text first, with an empty label.
std::vector<Fact> BodyOf(const Letter& letter);

// At most so many bytes, never within a character; what was cut off ends in "…".
std::string CutTo(std::string_view text, size_t max_bytes);
// The same as one line of valid UTF-8: what ranks and servers say goes to chats, mail and terminals.
std::string Readable(std::string_view text, size_t max_bytes);

}  // namespace aimaster::notify
