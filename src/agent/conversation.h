// Conversation: what the agent says to its master, and what it lets its master tell it. A pure state machine: bytes and
// the time go in, steps come out; it knows no socket, so the whole of it can be simulated.
//
//             Hello sent             Welcome, epoch not older
//   (closed) ────────────▶ greeting ─────────────────────────▶ welcomed: reports, heartbeats, commands
//      ▲                      │ Welcome of an older epoch           │
//      └──────────────────────┴───────────────  OnClose  ───────────┘
//
// Two masters may believe that the job is theirs. Whoever has the greater epoch is right; the agent remembers the
// greatest that it ever saw (SaveEpoch comes before anything that the new master wants) and hears nobody older.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "agent/attempt_files.h"
#include "agent/clock_offset.h"
#include "agent/tidings.h"
#include "aimaster/v1/agent.pb.h"
#include "core/time.h"
#include "wire/report_queue.h"

namespace aimaster::agent {

struct AgentIdentity {
  uint32_t node = 0;
  std::string node_name;
  std::string agent_id;
  std::string host_name;
  std::string boot_id;
  int64_t pid = 0;
  std::string address;
};

struct LogActivity {
  uint64_t bytes = 0;
  int64_t last_output_wall_ns = 0;
  // For how long nothing has been printed, and by whom of those that run the longest. None: no rank runs here; who
  // has ended is known to have lived until then.
  struct Quiet {
    Duration silent{};
    std::optional<uint32_t> quietest_rank;
    Duration quietest_silent{};
  };
  std::optional<Quiet> quiet = {};
  uint64_t look = 0;  // the last LookNow that this was looked for after; 0: none
};

// What has to be done, in this order.
struct Send {
  std::string message;
};
struct SaveEpoch {
  uint64_t epoch = 0;
};
struct Welcomed {
  v1::JobConfig job;
};
struct Order {
  v1::Command command;
};
struct Refuse {  // a master that is not out of date wants nothing of us, for good
  std::string reason;
  bool job_over = false;
};
struct HangUp {
  std::string reason;
};
struct Note {  // for the log
  std::string text;
};
using Step = std::variant<Send, SaveEpoch, Welcomed, Order, Refuse, HangUp, Note>;
using Steps = std::vector<Step>;

class Conversation {
 public:
  Conversation(AgentIdentity identity, uint64_t greatest_epoch);

  // A connection is open; `live` are the attempts that are claimed and not ended; `trouble` is for people.
  Steps OnOpen(const std::vector<AttemptKey>& live, const std::string& trouble = {});
  Steps OnMessage(std::string_view bytes, Wall now);
  void OnClose() { state_ = State::kClosed; }

  // Keeps the report until it is acknowledged. One that says the same as one still kept is left out.
  Steps Say(v1::Report report);
  Steps Heartbeat(Moment now, const LogActivity& activity, const Tidings& tidings = {},
                  std::optional<v1::Communication> communication = {});
  Steps SendRecords(v1::Records records);

  bool is_welcomed() const { return state_ == State::kWelcomed; }
  uint64_t greatest_epoch() const { return greatest_epoch_; }
  size_t CountUnacknowledged(v1::Report::BodyCase kind) const;
  bool has_unacknowledged() const { return !queue_.unacknowledged().empty(); }
  ClockOffset& clock() { return clock_; }

 private:
  enum class State { kClosed, kGreeting, kWelcomed };

  // True when the sender is no older than the greatest; adds SaveEpoch when it is newer.
  bool Accept(uint64_t epoch, Steps& steps);
  Steps OnWelcome(const v1::Welcome& welcome);
  Steps OnRefused(const v1::Refused& refused);
  Steps OnCommand(const v1::Command& command);

  AgentIdentity identity_;
  uint64_t greatest_epoch_;
  State state_ = State::kClosed;
  ReportQueue queue_;
  ClockOffset clock_;
};

}  // namespace aimaster::agent
