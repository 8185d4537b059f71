#include "sim/rank.h"

#include <signal.h>

#include "core/roles.h"
#include "sim/world.h"

namespace aimaster::sim {

using namespace std::chrono_literals;

std::string_view Name(Death death) {
  switch (death) {
    case Death::kItsOwn:
      return "by itself";
    case Death::kOrder:
      return "by an order to stop";
    case Death::kJobOver:
      return "since the job is over";
    case Death::kOrphaned:
      return "without a master";
    case Death::kShimDied:
      return "with its shim";
    case Death::kSwept:
      return "swept";
    case Death::kNodeDied:
      return "with its node";
  }
  return "";
}

namespace {

// Who does not count for the job's success mostly has no end of its own.
bool HasAnEnd(const JobSpec& spec, uint32_t rank) {
  for (const RoleSpec& role : spec.roles) {
    const uint32_t ranks = role.count * role.ranks_per_instance;
    if (rank < ranks) return CountsForSuccess(spec, role.role, rank / role.ranks_per_instance);
    rank -= ranks;
  }
  return true;
}

}  // namespace

RankLife::RankLife(World& w, SimNode& n, agent::AttemptKey k, uint32_t number, uint32_t local_number, uint64_t parent)
    : world(w),
      node(n),
      key(k),
      rank(number),
      local(local_number),
      shim(parent),
      boot(n.machine.boot()),
      process(w.queue) {}

void RankLife::Begin() {
  Random& random = world.random;
  const RankHabits& habits = world.scenario.ranks;
  is_alive = true;
  if (node.is_frozen()) process.Stop();
  escapes = random.Chance(habits.escapes);
  ignores_term = random.Chance(habits.ignores_term);
  process.After(random.Time(1ms, 300ms), [this] {
    has_printed = true;
    node.disk.attempts[key].ranks[local].has_printed = true;
    node.Poke(key);
    Print();
  });
  node.disk.attempts[key].ranks[local].printed = node.Now().monotonic;
  const bool is_calm = world.faults_are_over;
  if (!is_calm && random.Chance(habits.uninterruptible)) {
    process.After(random.Time(0s, habits.works_for),
                  [this] { stuck_until = world.queue.now() + world.random.Time(1s, 100s); });
  }
  const double fate = static_cast<double>(random.Below(100000)) / 100000;
  if (!is_calm && fate < habits.fails) {
    process.After(random.Chance(0.3) ? random.Time(0s, 1s) : random.Time(0s, habits.works_for), [this] { Fail(); });
  } else if (!HasAnEnd(world.scenario.spec, rank) || (!is_calm && fate < habits.fails + habits.hangs)) {
    if (habits.prints_within > Duration::zero() && HasAnEnd(world.scenario.spec, rank)) {
      process.After(random.Time(0s, habits.works_for), [this] { Hang(); });
    }
    return;  // neither an end nor a word
  } else {
    process.After(habits.works_for + random.Delay(2s), [this] { Succeed(); });
  }
}

void RankLife::Succeed() {
  if (is_alive && !is_dumping && !hangs) Die(0, std::nullopt, false, Death::kItsOwn);
}

void RankLife::Print() {
  if (!is_alive || is_dumping || hangs) return;
  node.disk.attempts[key].ranks[local].printed = node.Now().monotonic;
  world.OnRankPrinted(*this);
  const Duration within = world.scenario.ranks.prints_within;
  if (within > Duration::zero()) process.After(world.random.Time(1ms, within), [this] { Print(); });
}

void RankLife::Hang() {
  if (!is_alive || hangs) return;
  hangs = true;
  world.SayWorld("rank " + std::to_string(rank) + " hangs");
  if (world.random.Chance(world.scenario.ranks.hangs_all)) world.HangAll();
}

void RankLife::Fail() {
  if (!is_alive || is_dumping) return;
  Random& random = world.random;
  const RankHabits& habits = world.scenario.ranks;
  if (random.Chance(habits.hardware)) words = random.Chance(0.5) ? "GpuEccUncorrectable" : "GpuFellOffBus";
  if (words.empty() && random.Chance(habits.address_in_use)) words = "AddressInUse";
  if (words.empty() && random.Chance(0.3)) words = random.Chance(0.5) ? "CudaOutOfMemory" : "NcclRemoteError";
  world.TakePeersAlong(*this);
  if (!random.Chance(0.5)) {
    Die(static_cast<int>(random.Pick({1u, 1u, 2u, 42u, 127u, 255u})), std::nullopt, false, Death::kItsOwn);
    return;
  }
  const int number = random.Pick({SIGSEGV, SIGABRT, SIGKILL, SIGBUS, SIGTERM});
  if (number == SIGKILL || number == SIGTERM || !random.Chance(habits.dumps_core)) {
    Die(std::nullopt, number, false, Death::kItsOwn);
    return;
  }
  is_dumping = true;
  process.After(random.Delay(60s), [this, number] { Die(std::nullopt, number, true, Death::kItsOwn); });
}

bool RankLife::is_stuck() const { return is_alive && world.queue.now() < stuck_until; }

// Signals arrive one after the other, so the answer to the first stands until a harder one comes.
void RankLife::Signal(int number, Death why) {
  if (!is_alive) return;
  if (number == SIGKILL) {
    const int order = ++signalled_;
    process.After(std::max<Duration>(stuck_until - world.queue.now(), world.random.Time(0s, 5ms)), [this, why, order] {
      if (order == signalled_) Die(std::nullopt, SIGKILL, false, why);
    });
    return;
  }
  if (ignores_term || is_dumping || signalled_ > 0) return;
  const int order = ++signalled_;
  const bool in_order = world.random.Chance(world.scenario.ranks.leaves_in_order);
  process.After(std::max<Duration>(stuck_until - world.queue.now(), world.random.Delay(1s)),
                [this, why, order, in_order] {
                  if (order != signalled_) return;
                  if (in_order) {
                    Die(0, std::nullopt, false, why);
                  } else {
                    Die(std::nullopt, SIGTERM, false, why);
                  }
                });
}

void RankLife::Die(std::optional<int> exit_code, std::optional<int> exit_signal, bool core, Death why) {
  if (!is_alive) return;
  is_alive = false;
  death = why;
  code = exit_code;
  signal = exit_signal;
  dumped_core = core;
  was_signalled_before_end = was_signalled;
  process.Kill();
  world.OnRankDied(*this);
}

}  // namespace aimaster::sim
