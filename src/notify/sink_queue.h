// SinkQueue: what waits for one sink, and when the next of it may go. One message at a time, in the order of the
// events; the next one leaves only when the journal knows what became of the one before, so that a crash repeats one at
// most.
//
//   idle ──Take──▶ sending ──OnDelivered─────────────▶ marking ──OnMarked──▶ idle
//                     └─OnFailed─▶ waiting ─Take─▶ …  or, given up ──▶ marking
//
// When more waits than the rate allows, all of it becomes one digest: somebody who is woken by a storm wants to hear of
// it once. Merging always, after a delay, was rejected: the first message should come at once. What waits for a sink
// that is away for days takes no more memory than kKeptWhole events: more could only leave as a digest, and becomes
// one. Pure; no clock.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/time.h"
#include "journal/job_reader.h"
#include "notify/limits.h"
#include "notify/plan.h"
#include "notify/request.h"

namespace aimaster::notify {

// What is sent with the next message: one event, or all that wait.
struct Batch {
  NumberedEvent event;                                // told in whole
  int64_t first = 0, last = 0;                        // numbers
  size_t count = 0;                                   // of events
  std::vector<std::pair<std::string, size_t>> kinds;  // of the others: title and how many
};

// Events that will leave as one.
class Crowd {
 public:
  void Add(NumberedEvent event);
  size_t count() const { return batch_.count; }
  Batch Take();

 private:
  Batch batch_{};                           // without the kinds
  std::map<std::string, size_t> by_title_;  // of all
};

class SinkQueue {
 public:
  static constexpr size_t kKeptWhole = kPerMinuteMost;

  // `random` gives numbers from 0 to 1, for the jitter: sinks that failed together should not come back together.
  SinkQueue(const Sink& sink, std::function<double()> random);

  void Add(NumberedEvent event);
  size_t waiting() const { return queued() + (batch_ ? batch_->count : 0); }
  bool is_idle() const { return state_ == State::kIdle && queued() == 0; }

  // The batch to send now; it stays the same over all its tries. Null: not now.
  const Batch* Take(Monotonic now);
  // When Take should be asked again; none: when something happens.
  std::optional<Monotonic> NextDeadline(Monotonic now) const;

  void OnDelivered();
  enum class Failure { kTriedAgain, kGivenUp };
  Failure OnFailed(Monotonic now, const Outcome& outcome);
  // What the journal has to know until OnMarked: the batch is done with.
  const Batch& done() const { return *batch_; }
  void OnMarked();

  uint32_t tries() const { return tries_; }
  Duration next_try_in(Monotonic now) const { return not_before_ ? *not_before_ - now : Duration{}; }

 private:
  enum class State { kIdle, kSending, kWaiting, kMarking };

  size_t queued() const { return crowd_.count() + events_.size(); }
  void Refill(Monotonic now);
  Batch MakeBatch();
  void Crowded();  // all that is queued will leave as one

  milliseconds retry_for_;
  double per_minute_;
  std::function<double()> random_;
  State state_ = State::kIdle;
  Crowd crowd_;                       // before them
  std::deque<NumberedEvent> events_;  // that may still leave one by one
  std::optional<Batch> batch_;
  uint32_t tries_ = 0;
  std::optional<Monotonic> first_try_, not_before_;
  double tokens_;
  std::optional<Monotonic> refilled_;
};

}  // namespace aimaster::notify
