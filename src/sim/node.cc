#include "sim/node.h"

#include <signal.h>

#include "sim/world.h"

namespace aimaster::sim {

SimNode::SimNode(World& w, NodeIndex i)
    : world(w), index(i), name("node-" + std::to_string(Value(i))), machine(w.queue, w.random) {}

void SimNode::StartAgent() {
  if (agent != nullptr) return;
  agent = std::make_unique<SimAgent>(world, *this, world.NextAgentId());
  if (is_frozen()) agent->process.Stop();
  agent->process.Run([there = agent.get()] { there->Begin(); });
}

uint64_t SimNode::SpawnShim(AttemptKey key, Duration grace) {
  const uint64_t id = (uint64_t{Value(index)} << 32) + ++last_shim_;
  auto& shim = shims[id] = std::make_unique<SimShim>(world, *this, key, id, grace);
  if (is_frozen()) shim->process.Stop();
  shim->Begin();
  return id;
}

SimShim* SimNode::FindShim(uint64_t id) {
  const auto found = shims.find(id);
  return found == shims.end() ? nullptr : found->second.get();
}

bool SimNode::AnyShimOf(AttemptKey key) const {
  for (const auto& [id, shim] : shims) {
    if (shim->key() == key) return true;
  }
  return false;
}

void SimNode::SignalShim(uint64_t id, bool at_once, Death why) {
  SimShim* shim = FindShim(id);
  if (shim != nullptr)
    shim->process.After(world.random.Delay(std::chrono::milliseconds{5}), [=] { shim->Stop(at_once, why); });
}

void SimNode::Poke(AttemptKey key) {
  if (agent == nullptr) return;
  SimAgent* there = agent.get();
  there->process.After(world.random.Delay(std::chrono::milliseconds{20}), [=] { there->Look(key); });
}

void SimNode::OnShimGone(SimShim& shim) {
  shim.process.Kill();
  const uint64_t id = shim.id();
  const AttemptKey key = shim.key();
  dead_shims_.push_back(std::move(shims.at(id)));
  shims.erase(id);
  if (agent == nullptr) return;
  SimAgent* there = agent.get();
  there->process.After(world.random.Delay(std::chrono::milliseconds{5}), [=] { there->OnShimGone(key, id); });
}

void SimNode::CrashShim(uint64_t id) {
  SimShim* shim = FindShim(id);
  AttemptDirectory& directory = disk.attempts[shim->key()];
  if (directory.lock_holder == id) directory.lock_holder = 0;
  OnShimGone(*shim);
  const std::vector<RankLife*> all = ranks;
  for (RankLife* rank : all) {
    if (rank->shim == id && !rank->escapes && !rank->is_stuck()) rank->Kill(SIGKILL, Death::kShimDied);
  }
}

void SimNode::PowerOff(bool for_good) {
  stays_off = stays_off || for_good;
  if (!is_powered) return;
  is_powered = false;
  const std::vector<RankLife*> all = ranks;
  for (RankLife* rank : all) rank->Kill(SIGKILL, Death::kNodeDied);
  for (auto& [id, shim] : shims) {
    shim->process.Kill();
    disk.attempts[shim->key()].lock_holder = 0;
    dead_shims_.push_back(std::move(shim));
  }
  shims.clear();
  if (agent != nullptr) world.KillAgent(*this, true);
  freezes = 0;
  world.provider.OnNodeDied(*this);
}

void SimNode::PowerOn() {
  if (is_powered) return;
  is_powered = true;
  stays_off = false;
  machine.Boot();
  world.provider.OnNodeBooted(*this);
}

void SimNode::ComeBackUninvited() {
  if (!world.provider.IsGone(index)) return PowerOn();
  const auto& known = world.history.job().nodes;
  const auto found = known.find(index);
  if (found == known.end() || !found->second.lost) {
    world.queue.After(std::chrono::seconds{1}, [this] { ComeBackUninvited(); });
    return;
  }
  is_powered = true;
  machine.Boot();
  StartAgent();
}

template <typename Act>
void SimNode::ForEachProcess(Act act) {
  if (agent != nullptr) act(agent->process);
  for (auto& [id, shim] : shims) act(shim->process);
  for (RankLife* rank : ranks) act(rank->process);
}

void SimNode::Freeze() {
  if (++freezes == 1) ForEachProcess([](Process& process) { process.Stop(); });
}

void SimNode::Thaw() {
  if (freezes > 0 && --freezes == 0) ForEachProcess([](Process& process) { process.Continue(); });
}

}  // namespace aimaster::sim
