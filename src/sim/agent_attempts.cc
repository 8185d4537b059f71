// SimAgent's attempts: what attempts.cc and attempt_life.cc do, over the simulated disk.
#include <signal.h>

#include <algorithm>

#include "agent/limits.h"
#include "sim/agent_process.h"
#include "sim/world.h"

namespace aimaster::sim {

using namespace std::chrono_literals;
using agent::AttemptInput;

// ---- attempts ----

AttemptDirectory& SimAgent::DirectoryOf(AttemptKey key) { return node_.disk.attempts[key]; }

void SimAgent::AdoptAll() {
  const std::map<AttemptKey, AttemptDirectory> found = node_.disk.attempts;
  for (auto entry = found.begin(); entry != found.end(); ++entry) {
    const auto next = std::next(entry);
    const bool is_last = next == found.end() || next->first.instance != entry->first.instance;
    if (entry->second.is_claimed) {
      if (is_last || !entry->second.ended) Adopt(entry->first);
    } else if (entry->second.has_tombstone && is_last) {
      ReportNeverStarted(entry->first);
    }
  }
}

SimAgent::Life& SimAgent::Add(AttemptKey key) {
  std::erase_if(attempts_, [key](const auto& entry) {
    return entry.first.instance == key.instance && entry.first.attempt < key.attempt && entry.second.has_ended();
  });
  Life& life = attempts_[key] = Life();
  life.ends.resize(DirectoryOf(key).ranks.size());
  return life;
}

void SimAgent::Adopt(AttemptKey key) {
  Say("found " + ToText(key));
  Life& life = Add(key);
  const AttemptDirectory& directory = DirectoryOf(key);
  if (directory.ended) {
    Look(key);
    return;
  }
  if (directory.boot != node_.machine.boot()) {
    life.lost_reason = "the node was restarted";
    life.state = Next(life.state, AttemptInput::kShimLost);
    CollectExits(key);
    Finish(key, AttemptInput::kSwept);
  } else if (directory.lock_holder != 0) {
    WatchShim(key, directory.lock_holder);
  } else {
    HandleShimGone(key);
  }
}

void SimAgent::Start(const v1::StartInstance& start) {
  const AttemptKey key = ToKey(start.id());
  if (world_.broken() == Break::kCountTwice) CountAgain(key);
  const bool is_blind = world_.broken() == Break::kStartTwice || world_.broken() == Break::kEndTooEarly;
  if (attempts_.contains(key)) {
    ReportAll(key);
    if (world_.broken() == Break::kStartTwice && node_.AnyShimOf(key)) {
      const AttemptDirectory old = DirectoryOf(key);
      DirectoryOf(key) = {.is_claimed = true, .boot = old.boot, .first_rank = old.first_rank, .ranks = old.ranks};
      node_.SpawnShim(key, 1s);
    }
    return;
  }
  for (const auto& [other, life] : attempts_) {
    if (other.instance != key.instance || (other.attempt < key.attempt && (life.has_ended() || is_blind))) continue;
    Say("did not start " + ToText(key) + ": " + ToText(other) + (life.has_ended() ? " came after it" : " lives"));
    return;
  }
  AttemptDirectory& directory = DirectoryOf(key);
  if (directory.is_claimed) {
    Adopt(key);
    return;
  }
  if (directory.has_tombstone) {
    Say("did not start " + ToText(key) + ": it was stopped before");
    ReportNeverStarted(key);
    return;
  }
  Say("starts " + ToText(key) + ", round " + std::to_string(start.round()));
  directory.boot = node_.machine.boot();
  directory.round = start.round();
  directory.first_rank = start.ranks_size() > 0 ? start.ranks(0).rank() : 0;
  directory.ranks.resize(static_cast<size_t>(start.ranks_size()));
  directory.is_claimed = true;
  Add(key);
  process.Step();
  const uint64_t shim = node_.SpawnShim(key, std::chrono::milliseconds(job_.stop_grace_ms()));
  process.Step();
  WatchShim(key, shim);
}

void SimAgent::Stop(AttemptKey key, bool at_once) {
  Say("stops " + ToText(key) + (at_once ? " at once" : ""));
  if (world_.broken() == Break::kEndTooEarly) EndEarly(key);
  if (const auto found = attempts_.find(key); found != attempts_.end()) {
    StopLife(key, at_once, Death::kOrder);
    if (attempts_.at(key).has_ended()) ReportAll(key);
    return;
  }
  AttemptDirectory& directory = DirectoryOf(key);
  if (directory.is_claimed) {
    Adopt(key);
    StopLife(key, at_once, Death::kOrder);
    return;
  }
  directory.has_tombstone = true;
  process.Step();
  ReportNeverStarted(key);
}

void SimAgent::StopAll(bool at_once, Death why) {
  std::vector<AttemptKey> keys;
  for (const auto& [key, life] : attempts_) keys.push_back(key);
  for (const AttemptKey key : keys) StopLife(key, at_once, why);
}

void SimAgent::ReportNeverStarted(AttemptKey key) {
  v1::Report report;
  *report.mutable_attempt_ended()->mutable_id() = ToId(key);
  Report(std::move(report));
}

std::vector<AttemptKey> SimAgent::Live() const {
  std::vector<AttemptKey> live;
  for (const auto& [key, life] : attempts_) {
    if (!life.has_ended()) live.push_back(key);
  }
  return live;
}

// ---- one attempt ----

void SimAgent::StopLife(AttemptKey key, bool at_once, Death why) {
  const Life& life = attempts_.at(key);
  if (life.has_ended() && !life.was_ended_early) return;
  DirectoryOf(key).has_tombstone = true;
  process.Step();
  if (SimShim* shim = node_.FindShim(life.shim)) {
    while (shim->process.is_stopped() && !node_.is_frozen()) shim->process.Continue();  // SIGCONT
    node_.SignalShim(life.shim, at_once, why);
  }
}

void SimAgent::WatchShim(AttemptKey key, uint64_t shim) {
  attempts_.at(key).shim = shim;
  if (node_.FindShim(shim) == nullptr) {
    process.After(2ms, [this, key, shim] { OnShimGone(key, shim); });
    return;
  }
  Look(key);
}

void SimAgent::Look(AttemptKey key) {
  const auto found = attempts_.find(key);
  if (found == attempts_.end() || found->second.has_ended()) return;
  Life& life = found->second;
  const AttemptDirectory& directory = DirectoryOf(key);
  if (directory.is_started && !life.has_started) {
    life.has_started = true;
    life.state = Next(life.state, AttemptInput::kStarted);
    ReportStarted(key);
  }
  CollectExits(key);
  const bool all_printed = std::ranges::all_of(directory.ranks, [](const RankFiles& f) { return f.has_printed; });
  if (life.has_started && all_printed && !std::exchange(life.told_ready, true)) {
    v1::Report report;
    *report.mutable_attempt_ready()->mutable_id() = ToId(key);
    Report(std::move(report));
  }
  if (directory.ended && life.shim == 0) EndWithShim(key);
}

void SimAgent::OnShimGone(AttemptKey key, uint64_t shim) {
  const auto found = attempts_.find(key);
  if (found != attempts_.end() && found->second.shim == shim && !found->second.has_ended()) HandleShimGone(key);
}

void SimAgent::HandleShimGone(AttemptKey key) {
  attempts_.at(key).shim = 0;
  Look(key);
  Life& life = attempts_.at(key);
  if (life.has_ended()) return;
  // Before looking for the living, see to it that nobody is born.
  const bool was_stopped = DirectoryOf(key).has_tombstone;
  DirectoryOf(key).has_tombstone = true;
  process.Step();
  process.After(50us, [this, key, was_stopped] {
    Life& buried = attempts_.at(key);
    const AttemptDirectory& directory = DirectoryOf(key);
    if (directory.lock_holder != 0) {
      WatchShim(key, directory.lock_holder);
      return;
    }
    Look(key);
    if (buried.has_ended()) return;
    const bool nothing_started = !buried.has_started && !directory.is_reserved;
    buried.never_ran = nothing_started && was_stopped;
    if (!buried.never_ran) buried.lost_reason = nothing_started ? "it could not be started" : "its shim is gone";
    Say(ToText(key) + " has lost its shim");
    buried.state = Next(buried.state, AttemptInput::kShimLost);
    process.After(agent::kSweepFirst, [this, key] { Sweep(key); });
  });
}

void SimAgent::CollectExits(AttemptKey key) {
  const size_t count = attempts_.at(key).ends.size();
  for (uint32_t local = 0; local < count; ++local) {
    const auto& exit = DirectoryOf(key).ranks[local].exit;
    if (!attempts_.at(key).ends[local] && exit) SetRankEnd(key, local, exit);
  }
}

void SimAgent::SetRankEnd(AttemptKey key, uint32_t local, std::optional<agent::RankExitFile> exit) {
  Life& life = attempts_.at(key);
  const uint32_t number = DirectoryOf(key).first_rank + local;
  v1::Report report;
  v1::RankExited& exited = *report.mutable_rank_exited();
  *exited.mutable_id() = ToId(key);
  exited.set_rank(number);
  exited.set_local(local);
  if (exit) {
    if (exit->code) exited.set_code(*exit->code);
    if (exit->signal) exited.set_signal(*exit->signal);
    exited.set_core_dumped(exit->core);
    exited.set_stopped_by_us(exit->stopped_by_us);
    exited.set_exit_time_ns(exit->time_ns);
  } else {
    exited.set_lost_reason(life.lost_reason.empty() ? "its exit status was not recorded" : life.lost_reason);
  }
  const RankLife* rank = world_.FindRank(key, number);
  if (rank != nullptr && !rank->words.empty()) {
    v1::LineMatch& match = *exited.add_matches();
    match.set_rule(rank->words);
    match.set_line("it said " + rank->words);
    match.set_file("rank" + std::to_string(local) + ".err");
  }
  const agent::ClockEstimate clock = conversation_.clock().Estimate();
  exited.set_clock_offset_ns(clock.offset.count());
  exited.set_clock_uncertainty_ns(clock.uncertainty.count());
  if (world_.broken() == Break::kGoodNews && exit && exit->code && *exit->code != 0) exited.set_code(0);
  life.ends[local] = report;
  const bool is_failure = !exit || exit->code.value_or(1) != 0;
  if (world_.broken() == Break::kLoseExit && is_failure) return;
  Report(std::move(report));
}

void SimAgent::EndWithShim(AttemptKey key) {
  Life& life = attempts_.at(key);
  const AttemptDirectory& directory = DirectoryOf(key);
  life.lost_reason = directory.ended->lost_reason;
  CollectExits(key);
  life.never_ran = life.lost_reason.empty() && !directory.is_started && !directory.is_reserved;
  for (uint32_t local = 0; local < attempts_.at(key).ends.size(); ++local) {
    if (!attempts_.at(key).ends[local] && !attempts_.at(key).never_ran) SetRankEnd(key, local, std::nullopt);
  }
  Finish(key, AttemptInput::kShimEnded);
}

void SimAgent::Sweep(AttemptKey key) {
  size_t found = 0;
  for (RankLife* rank : world_.LiveRanksOf(node_)) {
    if (rank->key != key || world_.broken() == Break::kLeaveEscaped) continue;
    ++found;
    rank->Signal(SIGKILL, Death::kSwept);
  }
  CollectExits(key);
  for (uint32_t local = 0; local < attempts_.at(key).ends.size(); ++local) {
    const Life& life = attempts_.at(key);
    const RankLife* rank = world_.FindRank(key, DirectoryOf(key).first_rank + local);
    if (life.ends[local] || life.never_ran || (rank != nullptr && rank->is_alive && found > 0)) continue;
    SetRankEnd(key, local, std::nullopt);
  }
  Life& life = attempts_.at(key);
  life.empty_passes = found == 0 ? life.empty_passes + 1 : 0;
  if (life.empty_passes == 2) {
    Finish(key, AttemptInput::kSwept);
    return;
  }
  process.After(found == 0 ? Duration(5ms) : Duration(100ms), [this, key] { Sweep(key); });
}

void SimAgent::Finish(AttemptKey key, AttemptInput input) {
  Life& life = attempts_.at(key);
  life.state = Next(life.state, input);
  if (input == AttemptInput::kSwept) {
    for (uint32_t local = 0; local < attempts_.at(key).ends.size(); ++local) {
      if (!attempts_.at(key).ends[local] && !attempts_.at(key).never_ran) SetRankEnd(key, local, std::nullopt);
    }
    process.Step();
    DirectoryOf(key).ended = agent::Ended{attempts_.at(key).lost_reason};
    process.Step();
  }
  Say(ToText(key) + " has ended");
  ReportEnded(key);
  ExitWhenIdle();
}

void SimAgent::ReportAll(AttemptKey key) {
  const Life life = attempts_.at(key);
  if (life.has_started) ReportStarted(key);
  for (const auto& end : life.ends) {
    if (end) Report(*end);
  }
  if (life.has_ended()) ReportEnded(key);
}

void SimAgent::ReportStarted(AttemptKey key) {
  v1::Report report;
  *report.mutable_attempt_started()->mutable_id() = ToId(key);
  Report(std::move(report));
}

void SimAgent::ReportEnded(AttemptKey key) {
  v1::Report report;
  *report.mutable_attempt_ended()->mutable_id() = ToId(key);
  report.mutable_attempt_ended()->set_lost_reason(attempts_.at(key).lost_reason);
  Report(std::move(report));
}

}  // namespace aimaster::sim
