#include "notify/sink_queue.h"

#include <algorithm>
#include <cmath>

#include "notify/message_reader.h"

namespace aimaster::notify {
namespace {

// Which event of a storm is told in whole: the worst; among equals one with a decision; then the earliest.
bool IsMoreTelling(const NumberedEvent& a, const NumberedEvent& b) {
  const auto weight = [](const NumberedEvent& event) {
    return std::pair(SeverityOf(event.event.type), RestsOnDecision(event.event.type));
  };
  return weight(a) > weight(b);
}

}  // namespace

void Crowd::Add(NumberedEvent event) {
  ++by_title_[TitleOf(event.event.type)];
  if (batch_.count++ == 0) batch_.first = event.number;
  batch_.last = event.number;
  if (batch_.count == 1 || IsMoreTelling(event, batch_.event)) batch_.event = std::move(event);
}

Batch Crowd::Take() {
  --by_title_[TitleOf(batch_.event.event.type)];
  for (const auto& [title, count] : std::exchange(by_title_, {})) {
    if (count > 0) batch_.kinds.emplace_back(title, count);
  }
  std::ranges::sort(batch_.kinds, [](const auto& a, const auto& b) {
    return std::pair(b.second, a.first) < std::pair(a.second, b.first);
  });
  return std::exchange(batch_, {});
}

SinkQueue::SinkQueue(const Sink& sink, std::function<double()> random)
    : retry_for_(sink.retry_for), per_minute_(sink.per_minute), random_(std::move(random)), tokens_(sink.per_minute) {}

void SinkQueue::Add(NumberedEvent event) {
  events_.push_back(std::move(event));
  if (crowd_.count() > 0 || events_.size() > kKeptWhole) Crowded();
}

void SinkQueue::Crowded() {
  for (NumberedEvent& event : events_) crowd_.Add(std::move(event));
  events_.clear();
}

void SinkQueue::Refill(Monotonic now) {
  if (refilled_) {
    const double minutes = std::chrono::duration<double, std::ratio<60>>(now - *refilled_).count();
    tokens_ = std::min(per_minute_, tokens_ + std::max(0.0, minutes) * per_minute_);
  }
  refilled_ = now;
}

const Batch* SinkQueue::Take(Monotonic now) {
  if (state_ == State::kWaiting) {
    if (now < *not_before_) return nullptr;
  } else if (state_ == State::kIdle) {
    Refill(now);
    if (queued() == 0 || tokens_ < 1) return nullptr;
    batch_ = MakeBatch();
    tries_ = 0;
    first_try_ = now;
  } else {
    return nullptr;
  }
  // A try is a message to whoever counts them.
  Refill(now);
  tokens_ = std::max(0.0, tokens_ - 1);
  state_ = State::kSending;
  not_before_.reset();
  ++tries_;
  return &*batch_;
}

Batch SinkQueue::MakeBatch() {
  const bool all_may_go = crowd_.count() == 0 && static_cast<double>(events_.size()) <= tokens_;
  if (!all_may_go) {
    Crowded();
    return crowd_.Take();
  }
  Batch single{.event = std::move(events_.front()), .first = 0, .last = 0, .count = 1, .kinds = {}};
  events_.pop_front();
  single.first = single.last = single.event.number;
  return single;
}

std::optional<Monotonic> SinkQueue::NextDeadline(Monotonic now) const {
  if (state_ == State::kWaiting) return not_before_;
  if (state_ != State::kIdle || queued() == 0) return std::nullopt;
  if (tokens_ >= 1) return now;
  const auto missing = std::chrono::duration<double, std::ratio<60>>((1 - tokens_) / per_minute_);
  // Rounded up: a look that comes too early would find the same and be asked for again at once.
  return refilled_.value_or(now) + std::chrono::ceil<std::chrono::milliseconds>(missing) + std::chrono::milliseconds(1);
}

void SinkQueue::OnDelivered() { state_ = State::kMarking; }

SinkQueue::Failure SinkQueue::OnFailed(Monotonic now, const Outcome& outcome) {
  const double doubled =
      std::ldexp(static_cast<double>(kBackoffFirst.count()), static_cast<int>(std::min(tries_ - 1, 20u)));
  const double most = std::min(doubled, static_cast<double>(kBackoffMost.count()));
  milliseconds delay(static_cast<int64_t>(most * (0.5 + 0.5 * random_())));
  delay = std::max(delay, outcome.retry_after.value_or(milliseconds(0)));
  if (outcome.refused || now + delay - *first_try_ > Duration(retry_for_)) {
    state_ = State::kMarking;
    return Failure::kGivenUp;
  }
  not_before_ = now + delay;
  state_ = State::kWaiting;
  return Failure::kTriedAgain;
}

void SinkQueue::OnMarked() {
  if (state_ != State::kMarking) return;  // a late word to a predecessor of ours
  batch_.reset();
  first_try_.reset();
  state_ = State::kIdle;
}

}  // namespace aimaster::notify
