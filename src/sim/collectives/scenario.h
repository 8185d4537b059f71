// Scenario: what a seed stands for: a job, what goes wrong in it, and how much of that can be seen. Odd seeds have
// faults, even ones are healthy; each kind of fault comes as often as any other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "c4d/verdict.h"
#include "sim/collectives/cluster.h"
#include "sim/collectives/fault.h"
#include "sim/collectives/layout.h"
#include "sim/collectives/program.h"

namespace aimaster::sim::collectives {

// What the observer sees. Not every source tells everything.
struct Sight {
  bool started = true;          // whether devices have begun
  bool ages = true;             // healthy jobs: always, as without them every moment looks like a hang
  bool outside = true;          // when ranks left an operation last
  bool progress = true;         // of the transport
  uint32_t kept = 0;            // of the operations outstanding, the newest; 0: all
  std::vector<bool> is_hidden;  // by rank: not observed; a quarter of them at most
};

struct Scenario {
  uint64_t seed = 0;
  Dimensions dimensions;
  Workload workload;
  Mode mode{};
  uint32_t queue_depth = 0;
  std::vector<Fault> faults;
  uint32_t slow_link = kNone;  // a rank: all its groups are slow
  Sight sight;
  c4d::HangTiming timing;
  bool expects_hang = false;
  bool is_early = false;  // observed as soon as a hang may be told
  Duration lateness{};    // else: so long after all stand still
  // Without a hang: when it is observed, and over what time the ranks' states are collected each time.
  std::vector<Duration> moments;
  Duration collecting{};
};

Scenario DrawScenario(uint64_t seed);
std::string Describe(const Scenario& scenario);

// For a job in which `kind` may happen to `rank` in that step: the instructions at which it can.
std::vector<uint32_t> PlacesFor(FaultKind kind, const Layout& layout, const std::vector<Instruction>& program);

}  // namespace aimaster::sim::collectives
