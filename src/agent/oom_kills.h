// OomKills tells the kernel's out-of-memory killer from anyone else who sends SIGKILL. The kernel counts its kills, per
// memory cgroup where there is one, else for the whole machine; a rank that got SIGKILL shortly after the count went up
// was its victim. The kernel's log says more, and an ordinary user may not read it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "core/time.h"

namespace aimaster::agent {

// The number after `oom_kill` in the text of memory.events, memory.oom_control or /proc/vmstat.
std::optional<uint64_t> ParseOomKills(std::string_view text);

class OomKills {
 public:
  OomKills();  // kills from now on count
  // A rank just died of SIGKILL: was it one of the kernel's kills? Each is believed once.
  bool Take(Monotonic now);
  // To be called now and then, so that it is known when a kill was.
  void Look(Monotonic now);

 private:
  std::string path_;
  uint64_t seen_ = 0;
  std::deque<Monotonic> kills_;  // not yet taken
};

}  // namespace aimaster::agent
