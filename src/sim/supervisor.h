// Supervisor: what starts the next master when one has died, and the person who says `resume` when nothing does.
#pragma once

#include <cstdint>

#include "core/time.h"

namespace aimaster::sim {

class World;

class Supervisor {
 public:
  explicit Supervisor(World& world) : world_(world) {}

  void Resume();  // starts a supervisor, and with it a master
  void Kill() { ++number_, is_alive_ = false; }
  bool is_alive() const { return is_alive_; }
  // 0 and 64 … 78: starting again does not help.
  void OnMasterGone(uint64_t master, int status);

 private:
  void StartMaster();

  World& world_;
  uint64_t number_ = 0;  // of the supervisor
  bool is_alive_ = false;
  uint64_t child_ = 0;
};

}  // namespace aimaster::sim
