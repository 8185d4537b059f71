#include "sim/shim.h"

#include <signal.h>

#include <algorithm>

#include "sim/world.h"

namespace aimaster::sim {

using namespace std::chrono_literals;

SimShim::SimShim(World& world, SimNode& node, AttemptKey key, uint64_t id, Duration grace)
    : process(world.queue), world_(world), node_(node), key_(key), id_(id), grace_(grace) {}

AttemptDirectory& SimShim::directory() { return node_.disk.attempts[key_]; }

void SimShim::Begin() {
  process.After(world_.random.Delay(30ms), [this] {
    if (directory().lock_holder != 0) return Exit();
    directory().lock_holder = id_;
    process.After(world_.random.Time(10us, 1ms), [this] { LookForTombstone(); });
  });
}

void SimShim::LookForTombstone() {
  const AttemptDirectory& found = directory();
  const bool is_spent = found.has_tombstone || found.ended || found.is_started || found.is_reserved;
  if (is_spent) return Exit();
  directory().is_reserved = true;
  process.After(world_.random.Delay(20ms), [this] { StartRanks(); });
}

void SimShim::StartRanks() {
  AttemptDirectory& here = directory();
  const auto count = static_cast<uint32_t>(here.ranks.size());
  for (uint32_t local = 0; local < count; ++local) {
    RankLife& rank = world_.AddRank(node_, key_, here.first_rank + local, local, id_);
    ranks_.push_back(&rank);
    rank.Begin();
    world_.OnRankStarted(rank);
  }
  process.After(world_.random.Time(100us, 20ms), [this] {
    directory().is_started = true;
    node_.Poke(key_);
  });
  lease_ = BeginLeaseWatch(node_.Now().monotonic.since_origin.count());
  LookAtLease();
  if (held_stop_) Stop(held_stop_->first, held_stop_->second);
}

// shim/lease_rule.h over the node's lease, with the margin that lets the agent go first.
void SimShim::LookAtLease() {
  const NodeDisk& disk = node_.disk;
  const int64_t now = node_.Now().monotonic.since_origin.count();
  const Duration timeout = disk.orphan_timeout == Duration::zero() ? Duration(600s) : disk.orphan_timeout;
  if (disk.lease_renewed && disk.lease_boot == node_.machine.boot()) {
    LeaseRenewed(&lease_, disk.lease_renewed->since_origin.count());
  }
  const int64_t pace = LeasePaceNs(timeout.count());
  const int64_t patience = timeout.count() + LeaseMarginNs(timeout.count());
  if (LeaseHasExpired(&lease_, now, patience, pace)) Stop(false, Death::kOrphaned);
  process.After(Duration(pace), [this] { LookAtLease(); });
}

void SimShim::Stop(bool at_once, Death why) {
  if (ranks_.empty()) {  // a signal waits until the loop begins; before the lock, the tombstone says it all
    held_stop_ = {at_once || (held_stop_ && held_stop_->first), why};
    return;
  }
  if (killing_ || (stopping_ && !at_once)) return;
  stopping_ = true;
  killing_ = at_once;
  for (RankLife* rank : ranks_) {
    if (!rank->is_alive) continue;
    if (why == Death::kOrphaned) {
      rank->was_alone_for = std::max(rank->was_alone_for, world_.queue.now() - node_.last_led);
    }
    rank->was_signalled = rank->was_signalled || why != Death::kOrphaned;
    rank->Signal(at_once ? SIGKILL : SIGTERM, why);
  }
  if (at_once) {
    kill_alarm_.Cancel();
  } else {
    kill_alarm_.After(grace_, [this, why] { Stop(true, why); });
  }
}

void SimShim::OnRankDied(RankLife& rank) {
  process.After(world_.random.Delay(20ms), [this, &rank] { WriteExit(rank); });
}

void SimShim::WriteExit(RankLife& rank) {
  agent::RankExitFile file;
  file.code = rank.code;
  file.signal = rank.signal;
  file.core = rank.dumped_core;
  file.stopped_by_us = rank.was_signalled_before_end;
  file.time_ns = node_.Now().wall.since_epoch.count();
  directory().ranks[rank.local].exit = file;
  node_.Poke(key_);
  FinishWhenEmpty();
}

void SimShim::FinishWhenEmpty() {
  const bool all_written =
      std::ranges::all_of(directory().ranks, [](const RankFiles& files) { return files.exit.has_value(); });
  if (!all_written) return;
  // What ranks left behind is looked for first.
  const Duration sweep = world_.random.Chance(0.1) ? world_.random.Time(0s, 2s) : world_.random.Delay(20ms);
  process.After(sweep, [this] {
    directory().is_started = true;
    directory().ended = agent::Ended{};
    node_.Poke(key_);
    Exit();
  });
}

void SimShim::Exit() {
  if (directory().lock_holder == id_) directory().lock_holder = 0;
  node_.OnShimGone(*this);
}

}  // namespace aimaster::sim
