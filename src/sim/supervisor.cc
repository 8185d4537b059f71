#include "sim/supervisor.h"

#include "sim/world.h"

namespace aimaster::sim {

using namespace std::chrono_literals;

void Supervisor::Resume() {
  ++number_;
  is_alive_ = true;
  StartMaster();
}

void Supervisor::StartMaster() { child_ = world_.StartMaster(); }

void Supervisor::OnMasterGone(uint64_t master, int status) {
  if (!is_alive_ || master != child_) return;
  if (status == 0 || (status >= 64 && status <= 78)) {
    is_alive_ = false;
    return;
  }
  world_.queue.After(world_.random.Delay(3s), [this, number = number_] {
    if (number == number_ && is_alive_) StartMaster();
  });
}

}  // namespace aimaster::sim
