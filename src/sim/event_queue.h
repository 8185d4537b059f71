// EventQueue: the time of a simulated world, which is only what happens next.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "core/time.h"

namespace aimaster::sim {

using Act = std::function<void()>;

// What is due at the same time happens in the order in which it was asked for.
class EventQueue {
 public:
  Duration now() const { return now_; }

  void After(Duration delay, Act act) {
    heap_.push_back({now_ + std::max(delay, Duration::zero()), ++asked_, std::move(act)});
    std::ranges::push_heap(heap_, Later);
  }
  // The next event, if it is due by then; otherwise it is `until`, and nothing happens.
  bool RunNext(Duration until) {
    if (heap_.empty() || heap_.front().at > until) {
      now_ = std::max(now_, until);
      return false;
    }
    std::ranges::pop_heap(heap_, Later);
    Event event = std::move(heap_.back());
    heap_.pop_back();
    now_ = event.at;
    event.act();
    return true;
  }

 private:
  struct Event {
    Duration at{};
    uint64_t number = 0;
    Act act;
  };
  static bool Later(const Event& a, const Event& b) { return a.at != b.at ? a.at > b.at : a.number > b.number; }

  Duration now_{};
  uint64_t asked_ = 0;
  std::vector<Event> heap_;
};

}  // namespace aimaster::sim
