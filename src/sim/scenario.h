// Scenario: what a seed decides before anything happens: the job, the machines, how ranks behave, and which faults this
// world knows. Not every world knows every fault: where everything breaks all the time, nothing gets far enough to show
// the rarer mistakes.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "core/job_spec.h"
#include "sim/random.h"

namespace aimaster::sim {

enum class Fault {
  kCrashMaster,      // the process, now
  kCrashMasterSoon,  // between two of its effects
  kStopMaster,       // SIGSTOP for a while
  kSecondMaster,     // somebody says `resume` while one lives
  kRebootMaster,     // its machine
  kKillSupervisor,   // nobody starts the next master until somebody says `resume`
  kCrashAgent,
  kCrashAgentSoon,  // between two things that it does
  kStopAgent,
  kCrashShim,
  kStopShim,
  kKillRank,          // somebody's SIGKILL
  kHangUpConnection,  // both ends hear of it
  kHalfOpen,          // one of them does not
  kPartition,         // a node and the master, for seconds or minutes
  kSlowNetwork,
  kLoseNode,    // power, for good
  kRebootNode,  // power, for a minute
  kFreezeNode,  // a virtual machine that is moved
  kFullDisk,    // the journal's
  kSlowDisk,
  kSetClock,  // some wall clock, by an hour
  kStopJob,   // a person
};
inline constexpr int kFaultKinds = static_cast<int>(Fault::kStopJob) + 1;

struct RankHabits {
  double fails = 0;     // chance that a rank's life ends in a failure of its own
  double hangs = 0;     // or in nothing at all
  double cascades = 0;  // chance that a peer's failure takes it along
  double ignores_term = 0;
  double leaves_in_order = 0;  // code 0 when asked to go
  double dumps_core = 0;
  double uninterruptible = 0;  // can't be killed for a while
  double escapes = 0;          // doesn't die with its shim
  double hardware = 0;         // a failure of its own is one of the node
  double address_in_use = 0;
  Duration works_for{};  // a round, when nothing happens
  // How long it is silent at most between two lines; zero: it says nothing but its first word.
  Duration prints_within{};
  double hangs_all = 0;  // one that hangs makes all that live wait for it
};

struct Scenario {
  JobSpec spec;
  uint32_t machines = 1;            // that the provider has
  bool provider_in_master = false;  // agents are started again only while a master lives
  bool provider_fences = false;     // a node that can't be reached is switched off, and then known to be gone
  RankHabits ranks;
  Duration faults_until{};
  uint32_t fault_count = 0;
  std::map<Fault, uint32_t> weights;
  Duration network_delay{};  // at most, mostly less
  Duration commit_delay{};
  double stale_address = 0;  // chance that a reader of master.json sees an older one
};

Scenario DrawScenario(Random& random);

}  // namespace aimaster::sim
