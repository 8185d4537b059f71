// Provider: gets agents running on machines, and never says that a node is gone unless it is. Two kinds, as there are
// two in the field: one lives in the master and starts agents again only while it lives (this very machine, pretending
// to be several); the other has a respawner on each node.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "core/ids.h"
#include "core/time.h"

namespace aimaster::sim {

class World;
class SimMaster;
struct SimNode;

class Provider {
 public:
  explicit Provider(World& world) : world_(world) {}

  void Acquire(SimMaster& master, const std::vector<NodeIndex>& nodes);
  void Isolate(NodeIndex) {}
  void Release(NodeIndex node) { wanted_.erase(node); }
  void Recover(NodeIndex node);
  // The job's end: agents get SIGTERM.
  void Dismiss();

  void OnAgentGone(SimNode& node, bool in_order);
  void OnNodeDied(SimNode& node);
  void OnNodeBooted(SimNode& node);
  bool IsGone(NodeIndex node) const { return gone_.contains(node); }
  void OnMasterGone(uint64_t master) { masters_.erase(master); }

 private:
  void StartAgentSoon(NodeIndex node, Duration delay);
  void TellLost(NodeIndex node);
  bool MayStart(NodeIndex node) const;

  World& world_;
  std::set<NodeIndex> wanted_;
  std::set<NodeIndex> gone_;                         // known to be dead, and told so whoever asks
  std::map<uint64_t, std::set<NodeIndex>> masters_;  // who has asked for which
  std::map<NodeIndex, Duration> backoff_;
  std::set<NodeIndex> starting_;
};

}  // namespace aimaster::sim
