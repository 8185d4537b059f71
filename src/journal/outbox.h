// Outbox: how far the job's events have been told to each sink of its notifications.
//
//   outbox(sink, position, delivered, gave_up, trouble)
//
// Think of a reader's bookmark: the events are the queue, in the journal's own order, and of each sink it is kept up to
// which one is done. So an event is in the outbox by the very transaction of the decision that made it, a storm of them
// costs nothing more, and nothing has to be copied for a sink. A table with a row for every event and sink was
// rejected: it says the same in a thousand times as many writes, in the path of every decision.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/time.h"
#include "journal/sqlite.h"

namespace aimaster {

inline constexpr const char* kOutboxSchema =
    "CREATE TABLE IF NOT EXISTS outbox(sink TEXT PRIMARY KEY, position INTEGER, delivered INTEGER, gave_up INTEGER, "
    "trouble TEXT) WITHOUT ROWID;";
inline constexpr const char* kGaveUpEvent = "aimaster.notify.gave_up";

struct SinkProgress {
  std::string sink;
  int64_t position = 0;   // the number of the last event that is done with, or that is not for this sink
  int64_t delivered = 0;  // events
  int64_t gave_up = 0;    // events
  std::string trouble;    // what the sink answered last, while it takes nothing; empty: it does
};
// In the order of the names. A journal of an older version has none.
Result<std::vector<SinkProgress>> ReadOutbox(Database& database);

// What became of some events at one sink.
struct OutboxMark {
  enum class Kind {
    kDelivered,
    kGaveUp,   // an event says so, which is itself sent to nobody
    kTrouble,  // they still wait; only the reason is new
    kPassed,   // none of them was for this sink, up to the position
  };
  Kind kind = Kind::kDelivered;
  std::string sink;
  int64_t position = 0;
  int64_t events = 0;
  std::string answer;  // what the sink said; one line, without secrets
  Moment at;
};
// Within a transaction of the caller's. Nothing moves a position back.
Status WriteMark(Database& database, const OutboxMark& mark);

}  // namespace aimaster
