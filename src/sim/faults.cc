#include "sim/faults.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "sim/world.h"

namespace aimaster::sim {

using namespace std::chrono_literals;

void Faults::Schedule() {
  for (uint32_t i = 0; i < world_.scenario.fault_count; ++i) {
    const Fault fault = Draw();
    world_.queue.After(world_.random.Time(0s, world_.scenario.faults_until), [this, fault] {
      if (!world_.faults_are_over) Inject(fault);
    });
  }
}

Fault Faults::Draw() {
  uint32_t sum = 0;
  for (const auto& [fault, weight] : world_.scenario.weights) sum += weight;
  uint64_t drawn = world_.random.Below(sum);
  for (const auto& [fault, weight] : world_.scenario.weights) {
    if (drawn < weight) return fault;
    drawn -= weight;
  }
  return Fault::kCrashMaster;
}

void Faults::Later(Duration duration, std::function<void()> undo) {
  const uint64_t number = ++last_undo_;
  undo_[number] = std::move(undo);
  world_.queue.After(duration, [this, number] {
    const auto found = undo_.extract(number);
    if (found) found.mapped()();
  });
}

void Faults::Cease() {
  for (auto& [number, undo] : std::exchange(undo_, {})) undo();
  world_.journal.is_full = false;
  for (auto& [index, node] : world_.nodes) {
    if (!node->is_powered && !node->stays_off) node->PowerOn();
  }
  for (SimMaster* master : world_.LiveMasters()) master->process.DieAfter(0, {});
  for (auto& [index, node] : world_.nodes) {
    if (node->agent != nullptr) node->agent->process.DieAfter(0, {});
  }
}

SimNode* Faults::AnyNode() {
  if (world_.nodes.empty()) return nullptr;
  return std::next(world_.nodes.begin(), static_cast<int64_t>(world_.random.Below(world_.nodes.size())))->second.get();
}

void Faults::Inject(Fault fault) {
  switch (fault) {
    case Fault::kCrashMaster:
    case Fault::kCrashMasterSoon:
    case Fault::kStopMaster:
    case Fault::kSecondMaster:
    case Fault::kRebootMaster:
    case Fault::kKillSupervisor:
      return HarmMaster(fault);
    case Fault::kCrashAgent:
    case Fault::kCrashAgentSoon:
    case Fault::kStopAgent:
    case Fault::kCrashShim:
    case Fault::kStopShim:
    case Fault::kKillRank:
    case Fault::kLoseNode:
    case Fault::kRebootNode:
    case Fault::kFreezeNode:
      return HarmNode(fault);
    case Fault::kHangUpConnection:
    case Fault::kHalfOpen:
    case Fault::kPartition:
    case Fault::kSlowNetwork:
      return HarmNetwork(fault);
    case Fault::kFullDisk:
    case Fault::kSlowDisk:
      return HarmDisk(fault);
    case Fault::kSetClock: {
      const Duration by = world_.random.Chance(0.5) ? Duration(1h) : Duration(-1h);
      SimNode* node = world_.random.Chance(0.3) ? nullptr : AnyNode();
      world_.SayWorld("the clock of " + (node ? node->name : "the master") + " is set by an hour");
      (node ? node->machine : world_.master_machine).StepWallClock(by);
      return;
    }
    case Fault::kStopJob:
      world_.PersonStopsJob(world_.random.Chance(0.3));
      return;
  }
}

void Faults::HarmMaster(Fault fault) {
  Random& random = world_.random;
  SimMaster* master = world_.AnyMaster();
  if (fault == Fault::kKillSupervisor) {
    world_.SayWorld("the supervisor is killed");
    world_.supervisor.Kill();
    if (random.Chance(0.7) && master != nullptr) world_.CrashMaster(*master, false);
    Later(random.Time(1s, 100s), [this] {
      if (!world_.supervisor.is_alive() && !world_.AnyMasterLives()) world_.supervisor.Resume();
    });
    return;
  }
  if (fault == Fault::kRebootMaster) {
    world_.SayWorld("the master's machine is started again");
    for (SimMaster* each : world_.LiveMasters()) world_.CrashMaster(*each, true);
    world_.supervisor.Kill();
    world_.master_machine.Boot();
    Later(random.Time(1s, 40s), [this] {
      if (!world_.supervisor.is_alive()) world_.supervisor.Resume();
    });
    return;
  }
  if (master == nullptr) return;
  if (fault == Fault::kCrashMaster) {
    world_.CrashMaster(*master, false);
  } else if (fault == Fault::kCrashMasterSoon) {
    master->process.DieAfter(random.Between(1, 60), [this, id = master->id()] {
      if (SimMaster* there = world_.FindMaster(id)) world_.CrashMaster(*there, false);
    });
  } else if (fault == Fault::kSecondMaster && random.Chance(0.5)) {
    SplitMasters(*master);
  } else {
    const bool has_rival = fault == Fault::kSecondMaster;
    world_.SayWorld("master-" + std::to_string(master->id()) + (has_rival ? " gets a rival" : " is stopped"));
    if (!has_rival || random.Chance(0.6)) {
      master->process.Stop();
      Later(random.Delay(100s), [this, id = master->id()] {
        if (SimMaster* there = world_.FindMaster(id)) there->process.Continue();
      });
    }
    if (has_rival) world_.supervisor.Resume();
    if (has_rival && random.Chance(0.5)) {  // two people had the same idea
      world_.supervisor.Resume();
      world_.CrashMaster(*master, false);
    }
  }
}

// The worst that two masters can come to: the old one sleeps until its agents have gone to the new one, wakes, is shown
// its own address for a while, and so are agents whose connections break.
void Faults::SplitMasters(SimMaster& old) {
  Random& random = world_.random;
  world_.SayWorld("master-" + std::to_string(old.id()) + " sleeps, gets a rival, and will not see it when it wakes");
  old.process.Stop();
  world_.supervisor.Resume();
  const auto wake = [this, id = old.id()] {
    SimMaster* there = world_.FindMaster(id);
    if (there == nullptr) return;
    world_.ShowOldAddress("master-" + std::to_string(id), *there, 60s);
    there->process.Continue();
  };
  Later(random.Time(10500ms, 16s), wake);
  for (int times = 0; times < 3; ++times) {
    world_.queue.After(random.Time(12s, 25s), [this, id = old.id()] {
      SimMaster* there = world_.FindMaster(id);
      SimNode* node = AnyNode();
      if (world_.faults_are_over || there == nullptr || node == nullptr || node->agent == nullptr) return;
      world_.ShowOldAddress(node->name, *there, 2s);
      if (world_.random.Chance(0.5)) return world_.CrashAgent(*node);
      world_.network.Break(node->agent->wire(), true, true);
    });
  }
}

void Faults::HarmNode(Fault fault) {
  SimNode* node = AnyNode();
  if (node == nullptr || !node->is_powered) return;
  if (fault == Fault::kCrashAgent || fault == Fault::kCrashAgentSoon || fault == Fault::kStopAgent) {
    if (node->agent != nullptr) HarmAgent(fault, *node);
  } else if (fault == Fault::kCrashShim || fault == Fault::kStopShim) {
    if (!node->shims.empty()) HarmShim(fault, *node);
  } else if (fault == Fault::kKillRank) {
    if (!node->ranks.empty()) node->ranks[world_.random.Below(node->ranks.size())]->Kill(SIGKILL, Death::kItsOwn);
  } else {
    HarmMachine(fault, *node);
  }
}

void Faults::HarmAgent(Fault fault, SimNode& node) {
  Random& random = world_.random;
  if (fault == Fault::kCrashAgent) {
    world_.CrashAgent(node);
  } else if (fault == Fault::kCrashAgentSoon) {
    node.agent->process.DieAfter(random.Between(1, 30), [this, &node, id = node.agent->id()] {
      if (world_.FindAgent(id) != nullptr) world_.CrashAgent(node);
    });
  } else {
    world_.SayWorld("the agent of " + node.name + " is stopped");
    node.agent->process.Stop();
    Later(random.Delay(100s), [this, id = node.agent->id()] {
      if (SimAgent* there = world_.FindAgent(id)) there->process.Continue();
    });
  }
}

void Faults::HarmShim(Fault fault, SimNode& node) {
  Random& random = world_.random;
  SimShim& shim = *std::next(node.shims.begin(), static_cast<int64_t>(random.Below(node.shims.size())))->second;
  const std::string whose = " of " + node.name + ", instance " + std::to_string(shim.key().instance);
  if (fault == Fault::kCrashShim) {
    world_.SayWorld("a shim is killed" + whose);
    node.CrashShim(shim.id());
  } else {
    world_.SayWorld("a shim is stopped" + whose);
    shim.process.Stop();
    Later(random.Delay(60s), [&node, id = shim.id()] {
      if (SimShim* there = node.FindShim(id)) there->process.Continue();
    });
  }
}

void Faults::HarmMachine(Fault fault, SimNode& node) {
  Random& random = world_.random;
  if (fault == Fault::kLoseNode) {
    world_.SayWorld(node.name + " is lost for good");
    node.PowerOff(true);
    // It was not that good.
    if (random.Chance(0.4)) Later(random.Time(5s, 100s), [&node] { node.ComeBackUninvited(); });
  } else if (fault == Fault::kRebootNode) {
    world_.SayWorld(node.name + " is started again");
    node.PowerOff(false);
    Later(random.Delay(90s), [&node] { node.PowerOn(); });
  } else {
    world_.SayWorld(node.name + " is frozen");
    node.Freeze();
    Later(random.Delay(100s), [&node] { node.Thaw(); });
  }
}

void Faults::HarmNetwork(Fault fault) {
  Random& random = world_.random;
  if (fault == Fault::kSlowNetwork) {
    world_.network.SetDelay(4s);
    Later(random.Delay(40s), [this] { world_.network.SetDelay(world_.scenario.network_delay); });
    return;
  }
  if (fault == Fault::kPartition) {
    SimNode* node = AnyNode();
    if (node == nullptr) return;
    const Duration lasts =
        random.Delay(std::max<Duration>(3 * Duration(world_.scenario.spec.timing.node_lost_timeout), 60s));
    world_.SayWorld(node->name + " is cut off");
    world_.network.Cut(Value(node->index));
    Later(lasts, [this, node] {
      world_.SayWorld(node->name + " is joined again");
      world_.network.Heal(Value(node->index));
    });
    return;
  }
  const std::vector<uint64_t> ids = world_.network.Ids();
  if (ids.empty()) return;
  const bool whole = fault == Fault::kHangUpConnection;
  const bool agent_hears = whole || random.Chance(0.5);
  world_.network.Break(ids[random.Below(ids.size())], agent_hears, whole || (!agent_hears && random.Chance(0.8)));
}

void Faults::HarmDisk(Fault fault) {
  Random& random = world_.random;
  if (fault == Fault::kFullDisk) {
    world_.SayWorld("the journal's disk is full");
    world_.journal.is_full = true;
    Later(random.Delay(60s), [this] { world_.journal.is_full = false; });
  } else {
    world_.commit_delay = random.Time(1s, 40s);
    Later(random.Delay(60s), [this] { world_.commit_delay = world_.scenario.commit_delay; });
  }
}

}  // namespace aimaster::sim
