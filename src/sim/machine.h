// Machine: a computer with two clocks. The wall clock is off, drifts and is set by people; the monotonic one begins at
// each boot and never jumps.
#pragma once

#include <cstdint>

#include "core/time.h"
#include "sim/event_queue.h"
#include "sim/random.h"

namespace aimaster::sim {

class Machine {
 public:
  Machine(EventQueue& queue, Random& random)
      : queue_(queue),
        uptime_(random.Time(std::chrono::minutes{1}, std::chrono::hours{2000})),
        wall_offset_(std::chrono::hours{24 * 365 * 55} +
                     random.Time(std::chrono::milliseconds{-300}, std::chrono::milliseconds{300})),
        drift_ppm_(static_cast<int64_t>(random.Below(400)) - 200) {}

  Moment Now() const {
    return {Monotonic{queue_.now() + uptime_},
            Wall{queue_.now() + queue_.now() / 1'000'000 * drift_ppm_ + wall_offset_}};
  }
  void StepWallClock(Duration by) { wall_offset_ += by; }
  void Boot() {
    ++boot_;
    uptime_ = std::chrono::seconds{20} - queue_.now();
  }
  uint32_t boot() const { return boot_; }

 private:
  EventQueue& queue_;
  Duration uptime_;
  Duration wall_offset_;
  int64_t drift_ppm_;
  uint32_t boot_ = 1;
};

}  // namespace aimaster::sim
