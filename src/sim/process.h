// Process: something that runs, can be stopped and continued (SIGSTOP, a frozen machine), and dies at any point.
//
// What it has asked for does not happen any more once it is dead, and waits while it is stopped: its timers, and what
// others sent it. To die in the middle of a function is an exception, ProcessDied, which ends where the process was
// called; so the code of a simulated process reads as if nothing could happen to it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "sim/event_queue.h"

namespace aimaster::sim {

struct ProcessDied {};

class Process {
 public:
  explicit Process(EventQueue& queue) : queue_(queue), state_(std::make_shared<State>(queue)) {}
  ~Process() { Kill(); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  bool is_alive() const { return state_->alive; }
  bool is_stopped() const { return state_->stops > 0; }

  // Now, or when it is continued.
  void Run(Act act) { state_->Run(state_, std::move(act)); }
  void After(Duration delay, Act act) {
    queue_.After(delay, [state = state_, act = std::move(act)]() mutable { state->Run(state, std::move(act)); });
  }

  // Stops are counted: a stopped process on a machine that is frozen and thawed is still stopped.
  void Stop() { ++state_->stops; }
  void Continue() {
    if (state_->stops == 0 || --state_->stops > 0) return;
    queue_.After(Duration::zero(), [state = state_] { state->Drain(state); });
  }
  void Kill() {
    state_->alive = false;
    state_->waiting.clear();
  }

  // Dies at the `steps`-th Step from now on; `on_death` is what the world does about it.
  void DieAfter(uint32_t steps, Act on_death) {
    steps_left_ = steps;
    on_death_ = std::move(on_death);
  }
  // A point at which it may die: between two things that others can see.
  void Step() {
    if (steps_left_ == 0 || --steps_left_ > 0) return;
    Act on_death = std::exchange(on_death_, {});
    if (on_death) on_death();
    throw ProcessDied();
  }

 private:
  struct State {
    explicit State(EventQueue& q) : queue(q) {}
    EventQueue& queue;
    bool alive = true;
    uint32_t stops = 0;
    bool draining = false;
    std::deque<Act> waiting;

    void Run(const std::shared_ptr<State>& self, Act act) {
      if (!alive) return;
      if (stops > 0 || (!waiting.empty() && !draining)) {
        waiting.push_back(std::move(act));
        return;
      }
      const std::shared_ptr<State> keep = self;
      try {
        act();
      } catch (const ProcessDied&) {
      }
    }
    void Drain(const std::shared_ptr<State>& self) {
      while (alive && stops == 0 && !waiting.empty()) {
        Act act = std::move(waiting.front());
        waiting.pop_front();
        draining = true;
        Run(self, std::move(act));
        draining = false;
      }
    }
  };

  EventQueue& queue_;
  std::shared_ptr<State> state_;
  uint32_t steps_left_ = 0;
  Act on_death_;
};

// One thing that a process will do later; asking again, or Cancel, makes it forget the former.
class Alarm {
 public:
  explicit Alarm(Process& process) : process_(process) {}
  void After(Duration delay, Act act) {
    const uint64_t number = ++number_;
    process_.After(delay, [this, number, act = std::move(act)] {
      if (number == number_) act();
    });
  }
  void Cancel() { ++number_; }

 private:
  Process& process_;
  uint64_t number_ = 0;
};

}  // namespace aimaster::sim
