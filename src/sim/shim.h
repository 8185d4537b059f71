// SimShim: what aimaster-shim does for one attempt, step by step on the simulated disk. It follows shim/begin.c (lock,
// tombstone, reserved exit files, then ranks), shim/stop.c and the lease's own rule; only the processes are simulated.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "shim/lease_rule.h"
#include "sim/node_disk.h"
#include "sim/process.h"
#include "sim/rank.h"

namespace aimaster::sim {

class World;
struct SimNode;

class SimShim {
 public:
  SimShim(World& world, SimNode& node, AttemptKey key, uint64_t id, Duration grace);

  void Begin();
  void Stop(bool at_once, Death why);
  void OnRankDied(RankLife& rank);

  uint64_t id() const { return id_; }
  AttemptKey key() const { return key_; }
  Process process;

 private:
  AttemptDirectory& directory();
  void LookForTombstone();
  void StartRanks();
  void WriteExit(RankLife& rank);
  void FinishWhenEmpty();
  void LookAtLease();
  void Exit();

  World& world_;
  SimNode& node_;
  const AttemptKey key_;
  const uint64_t id_;
  const Duration grace_;
  std::vector<RankLife*> ranks_;
  bool stopping_ = false, killing_ = false;
  std::optional<std::pair<bool, Death>> held_stop_;  // at once; why
  LeaseWatch lease_{};
  Alarm kill_alarm_{process};
};

}  // namespace aimaster::sim
