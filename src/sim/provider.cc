#include "sim/provider.h"

#include "sim/world.h"

namespace aimaster::sim {

using namespace std::chrono_literals;

void Provider::Acquire(SimMaster& master, const std::vector<NodeIndex>& nodes) {
  bool denied = false;
  for (const NodeIndex node : nodes) {
    masters_[master.id()].insert(node);
    if (Value(node) >= world_.scenario.machines) {
      denied = true;
    } else if (gone_.contains(node)) {
      TellLost(node);
    } else {
      wanted_.insert(node);
      StartAgentSoon(node, world_.nodes.contains(node) ? world_.random.Delay(100ms) : world_.random.Delay(3s));
    }
  }
  if (!denied) return;
  world_.queue.After(world_.random.Delay(1s), [this, id = master.id()] {
    SimMaster* asker = world_.FindMaster(id);
    if (asker != nullptr) asker->process.Run([asker] { asker->OnNodeDenied("there are no more machines"); });
  });
}

bool Provider::MayStart(NodeIndex node) const {
  if (!wanted_.contains(node) || gone_.contains(node)) return false;
  if (!world_.scenario.provider_in_master) return true;
  for (const auto& [master, nodes] : masters_) {
    if (nodes.contains(node)) return true;
  }
  return false;
}

void Provider::StartAgentSoon(NodeIndex node, Duration delay) {
  if (!starting_.insert(node).second) return;
  world_.queue.After(delay, [this, node] {
    starting_.erase(node);
    if (!MayStart(node)) return;
    SimNode& place = world_.NodeFor(node);
    if (place.is_powered) place.StartAgent();
  });
}

void Provider::OnAgentGone(SimNode& node, bool in_order) {
  // A respawner lets those be that ended in order; a master's own provider tries on.
  if (!node.is_powered || (in_order && !world_.scenario.provider_in_master)) return;
  Duration& pause = backoff_[node.index];
  pause = pause == Duration::zero() ? Duration(20ms) : std::min<Duration>(pause * 2, 5s);
  StartAgentSoon(node.index, pause);
}

void Provider::OnNodeDied(SimNode& node) {
  // Nobody says it is gone before it is certain that it doesn't come back by itself.
  world_.queue.After(world_.random.Time(1s, 20s), [this, index = node.index] {
    const SimNode& place = world_.NodeFor(index);
    if (!place.is_powered && place.stays_off) TellLost(index);
  });
}

void Provider::OnNodeBooted(SimNode& node) { StartAgentSoon(node.index, world_.random.Delay(2s)); }

void Provider::TellLost(NodeIndex node) {
  gone_.insert(node);
  for (const auto& [id, nodes] : masters_) {
    if (!nodes.contains(node)) continue;
    world_.queue.After(world_.random.Delay(500ms), [this, master = id, node] {
      SimMaster* asker = world_.FindMaster(master);
      if (asker != nullptr) asker->process.Run([asker, node] { asker->OnNodeLost(node, "its machine is gone"); });
    });
  }
}

void Provider::Recover(NodeIndex node) {
  world_.queue.After(world_.random.Delay(3s), [this, node] {
    const auto found = world_.nodes.find(node);
    if (found == world_.nodes.end()) {
      StartAgentSoon(node, 0ms);
      return;
    }
    SimNode& place = *found->second;
    if (!place.is_powered) {
      if (place.stays_off) TellLost(node);
    } else if (world_.network.IsCut(Value(node)) || place.is_frozen()) {
      if (!world_.scenario.provider_fences) return;
      world_.SayWorld("the provider switches " + place.name + " off");
      place.PowerOff(true);
    } else if (place.agent != nullptr) {
      world_.CrashAgent(place);
    } else {
      StartAgentSoon(node, 0ms);
    }
  });
}

void Provider::Dismiss() {
  for (auto& [index, node] : world_.nodes) {
    SimAgent* agent = node->agent.get();
    if (agent == nullptr || !node->is_powered || world_.network.IsCut(Value(index))) continue;
    wanted_.erase(index);
    world_.queue.After(world_.random.Delay(10ms), [this, id = agent->id()] {
      SimAgent* there = world_.FindAgent(id);
      if (there != nullptr) there->process.Run([there] { there->Leave(); });
    });
  }
}

}  // namespace aimaster::sim
