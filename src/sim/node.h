// SimNode: one machine of the job: its clocks, its disk, and what lives on it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/ids.h"
#include "sim/agent_process.h"
#include "sim/machine.h"
#include "sim/node_disk.h"
#include "sim/shim.h"

namespace aimaster::sim {

class World;

struct SimNode {
  SimNode(World& world, NodeIndex index);

  Moment Now() const { return machine.Now(); }
  bool is_frozen() const { return freezes > 0; }

  void StartAgent();  // nothing when one lives
  uint64_t SpawnShim(AttemptKey key, Duration grace);
  SimShim* FindShim(uint64_t id);
  bool AnyShimOf(AttemptKey key) const;
  void SignalShim(uint64_t id, bool at_once, Death why);
  // Something in an attempt's directory has changed; the agent sees it soon.
  void Poke(AttemptKey key);
  void OnShimGone(SimShim& shim);
  void CrashShim(uint64_t id);

  void PowerOff(bool for_good);
  void PowerOn();
  // A machine that was said to be gone comes back, with an agent that knows nothing of it. Not before the master knows
  // it: a provider that says so has seen to it that nothing starts there for this job, and this is somebody's mistake.
  void ComeBackUninvited();
  void Freeze();
  void Thaw();

  World& world;
  const NodeIndex index;
  const std::string name;
  Machine machine;
  NodeDisk disk;
  std::unique_ptr<SimAgent> agent;
  std::map<uint64_t, std::unique_ptr<SimShim>> shims;
  std::vector<RankLife*> ranks;  // alive
  bool is_powered = true;
  bool stays_off = false;
  int freezes = 0;
  Duration last_led{};  // when an agent here was last welcomed by a master

 private:
  template <typename Act>
  void ForEachProcess(Act act);
  std::vector<std::unique_ptr<SimShim>> dead_shims_;
  uint64_t last_shim_ = 0;
};

}  // namespace aimaster::sim
