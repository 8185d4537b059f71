// Faults: what goes wrong in a world, and when. All are temporary but those that say so, and all end at the end.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "sim/scenario.h"

namespace aimaster::sim {

class SimMaster;
class World;
struct SimNode;

class Faults {
 public:
  explicit Faults(World& world) : world_(world) {}

  void Schedule();
  // From now on nothing goes wrong: what was stopped goes on, what was cut is joined, what is dead is started again.
  void Cease();

 private:
  void Inject(Fault fault);
  void HarmMaster(Fault fault);
  void SplitMasters(SimMaster& old);
  void HarmNode(Fault fault);
  void HarmAgent(Fault fault, SimNode& node);
  void HarmShim(Fault fault, SimNode& node);
  void HarmMachine(Fault fault, SimNode& node);
  void HarmNetwork(Fault fault);
  void HarmDisk(Fault fault);
  Fault Draw();
  SimNode* AnyNode();
  // Undone after `duration`, or when all faults cease.
  void Later(Duration duration, std::function<void()> undo);

  World& world_;
  std::map<uint64_t, std::function<void()>> undo_;
  uint64_t last_undo_ = 0;
};

}  // namespace aimaster::sim
