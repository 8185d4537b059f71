#include "master/hang_watch.h"

#include <algorithm>
#include <utility>

#include "core/parameter_table.h"
#include "master/job_life.h"

namespace aimaster {
namespace {

// Longer than this nothing has been watched.
constexpr Duration kSilentMax = std::chrono::hours{24 * 3650};

Duration Bounded(int64_t ns) { return std::clamp(Duration(ns), Duration::zero(), kSilentMax); }

// What a node tells by its own clock, on ours. What the message took makes it later than it was.
Monotonic OnOurClock(Monotonic now, const v1::Heartbeat& heartbeat, uint64_t at_ns) {
  const auto at = static_cast<int64_t>(std::min<uint64_t>(at_ns, INT64_MAX / 2));
  const auto said = std::clamp<int64_t>(heartbeat.monotonic_ns(), 0, INT64_MAX / 2);
  return {now.since_origin - Bounded(said - at)};
}

bool IsWatched(const JobState& job) {
  const FaultToleranceParameters& parameters = job.spec.fault_tolerance;
  return !IsAsync(job) && (parameters.enable_job_hang_detection || parameters.enable_job_exit_hang_detection);
}

void Raise(std::optional<Monotonic>& latest, Monotonic time) { latest = std::max(latest.value_or(time), time); }

}  // namespace

// ---- the job's life ----

// Nothing of a former life counts in this one.
void HangWatch::Follow(Monotonic now, const JobState& job) {
  if (job.round != round_ || job.ranks_started != ranks_started_) {
    Forget();
    round_ = job.round;
    ranks_started_ = job.ranks_started;
  }
  if (job.phase != Phase::kRunning) {
    up_since_.reset();
  } else if (!up_since_ && (up_since_ = RanksUp(job))) {
    counts_from_ = setting_ ? std::max(*up_since_, setting_->set_at) : *up_since_;
  }
  // Who has ended has lived until then, and nobody is asked any more for what it printed at last.
  if (up_since_ && std::exchange(ended_, job.tallies.ranks_ended) != job.tallies.ranks_ended) {
    counts_from_ = std::max(counts_from_, now);
  }
}

void HangWatch::Forget() {
  up_since_.reset();
  has_found_ = false;
  ended_ = 0;
  told_advancing_.reset();
  printed_.reset();
  progressed_.reset();
  printed_on_.reset();
  setting_.reset();
  suspects_.clear();
  paused_since_.reset();
  asked_.reset();
  unanswered_.clear();
  all_heard_.reset();
}

Duration HangWatch::Interval(const JobState& job) const {
  return setting_ && setting_->interval ? *setting_->interval : Duration(job.spec.fault_tolerance.job_hang_interval);
}

bool HangWatch::LooksForSilence(const JobState& job) const {
  return up_since_ && !has_found_ && job.spec.fault_tolerance.enable_job_hang_detection &&
         Interval(job) > Duration::zero();
}

bool HangWatch::LooksForExit(const JobState& job) const {
  return up_since_ && !has_found_ && job.spec.fault_tolerance.enable_job_exit_hang_detection && job.first_success;
}

Monotonic HangWatch::Since() const { return std::max(counts_from_, printed_.value_or(counts_from_)); }

// Of this silence. A predecessor may have been the one who told.
bool HangWatch::IsToldAdvancing(const JobState& job) const {
  const Monotonic since = Since();
  return (told_advancing_ && since <= *told_advancing_) || (job.told_advancing && since <= *job.told_advancing);
}

// ---- what nodes say ----

void HangWatch::Heard(Monotonic now, NodeIndex node, const v1::Heartbeat& heartbeat, const JobState& job) {
  if (!IsWatched(job)) return;
  if (!began_) began_ = now;
  Follow(now, job);
  TakeOutput(now, node, heartbeat);
  TakeSetting(now, node, heartbeat, job);
  TakeAnswer(node, heartbeat.look());
  nodes_[node].heard = now;
  suspects_.erase(node);
  if (paused_since_ && suspects_.empty()) Resume(now);
}

// The same output is told again and again, each time later by what the message took; the quickest one is the truest.
void HangWatch::TakeOutput(Monotonic now, NodeIndex node, const v1::Heartbeat& heartbeat) {
  Hearing& hearing = nodes_[node];
  if (heartbeat.has_progress()) Raise(progressed_, OnOurClock(now, heartbeat, heartbeat.progress().advanced_ns()));
  if (!heartbeat.has_silent_ns()) return;
  hearing.quietest.reset();
  if (heartbeat.has_quietest_rank()) {
    hearing.quietest = Rank{heartbeat.quietest_rank()};
    hearing.quietest_since = {now.since_origin - Bounded(heartbeat.quietest_silent_ns())};
  }
  const Monotonic printed{now.since_origin - Bounded(heartbeat.silent_ns())};
  const Duration from = Duration(heartbeat.monotonic_ns()) - Bounded(heartbeat.silent_ns());
  if (from == hearing.printed_from && printed < hearing.printed) {
    hearing.printed = printed;
    if (printed_on_ == node) {  // who was the last to print may be another one
      printed_.reset();
      for (const auto& [index, other] : nodes_) {
        if (printed_ && other.printed <= *printed_) continue;
        printed_ = other.printed;
        printed_on_ = index;
      }
    }
  } else if (from != hearing.printed_from && printed > hearing.printed) {
    hearing.printed = printed;
    hearing.printed_from = from;
  }
  if (!printed_ || hearing.printed > *printed_) {
    printed_ = hearing.printed;
    printed_on_ = node;
  }
}

// The last one that was set counts, whoever set it.
void HangWatch::TakeSetting(Monotonic now, NodeIndex node, const v1::Heartbeat& heartbeat, const JobState& job) {
  if (!heartbeat.has_hang_setting()) return;
  const v1::HangSetting& told = heartbeat.hang_setting();
  Hearing& hearing = nodes_[node];
  const bool is_known = told.set_at_ns() == hearing.setting.set_at_ns() && told.round() == hearing.setting.round() &&
                        told.interval_ms() == hearing.setting.interval_ms();
  if (is_known || told.round() != Value(job.round)) return;
  hearing.setting = told;
  const Monotonic set_at = OnOurClock(now, heartbeat, told.set_at_ns());
  if (job.ranks_started && set_at < *job.ranks_started) return;  // before this start of the round
  if (setting_ && set_at < setting_->set_at) return;
  const std::chrono::milliseconds longest(kParameterSecondsMax), interval(told.interval_ms());
  setting_ = Setting{.node = node, .interval = std::nullopt, .set_at = set_at};
  if (told.interval_ms() != 0) setting_->interval = std::clamp(interval, std::chrono::milliseconds(0), longest);
  if (up_since_) counts_from_ = std::max(counts_from_, set_at);
}

void HangWatch::TakeAnswer(NodeIndex node, uint64_t look) {
  if (!asked_ || look != number_ || unanswered_.erase(node) == 0) return;
  if (unanswered_.empty()) all_heard_ = asked_;
}

// ---- who says nothing ----

void HangWatch::Watch(Monotonic now, const JobState& job) {
  if (!IsWatched(job)) return;
  if (!began_) began_ = now;
  Follow(now, job);
  if (!up_since_) return;
  suspects_.clear();
  for (const NodeIndex node : NodesWithRanks(job)) {
    const Monotonic heard = std::max(nodes_[node].heard.value_or(*began_), *began_);
    if (now - heard <= kSuspectAfter) continue;
    suspects_.insert(node);
    paused_since_ = std::min(paused_since_.value_or(heard), heard);
  }
  if (paused_since_ && suspects_.empty()) Resume(now);
}

// The time in which a node was not heard is taken out of the silence.
void HangWatch::Resume(Monotonic now) {
  const Monotonic since = Since();
  const Monotonic paused = std::max(*std::exchange(paused_since_, std::nullopt), since);
  if (now > paused) counts_from_ = since + (now - paused);
}

// ---- what follows ----

SilenceVerdict HangWatch::JudgeSilenceNow(Monotonic now, const JobState& job) const {
  return JudgeSilence({.interval = Interval(job),
                       .counts_from = counts_from_,
                       .last_output = printed_,
                       .last_progress = progressed_,
                       .all_heard = all_heard_,
                       .requires_progress = job.spec.fault_tolerance.hang_requires == HangRequires::kLogAndProgress},
                      now);
}

ExitVerdict HangWatch::JudgeExitNow(Monotonic now, const JobState& job) const {
  return JudgeExit({.interval = job.spec.fault_tolerance.job_exit_hang_interval,
                    .first_success = job.first_success,
                    .all_heard = all_heard_},
                   now);
}

HangWatch::Answer HangWatch::Look(Monotonic now, const JobState& job) {
  Answer answer;
  if (!IsWatched(job)) return answer;
  Follow(now, job);
  if (paused_since_) return answer;
  std::optional<Monotonic> unsure;
  if (LooksForSilence(job)) {
    const SilenceVerdict verdict = JudgeSilenceNow(now, job);
    const bool is_news = verdict.silence == Silence::kAdvancing && !IsToldAdvancing(job);
    if (verdict.silence == Silence::kUnsure) unsure = verdict.due;
    if (verdict.silence == Silence::kHang || is_news) answer.found = MakeFinding(verdict, now, job);
    if (is_news) told_advancing_ = now;
    has_found_ = verdict.silence == Silence::kHang;
  }
  if (LooksForExit(job) && !answer.found) {
    const ExitVerdict verdict = JudgeExitNow(now, job);
    if (verdict.hang == ExitHang::kUnsure) Raise(unsure, *verdict.due);
    has_found_ = verdict.hang == ExitHang::kHang;
    if (has_found_) {
      answer.found = HangFound{.kind = HangKind::kExit,
                               .round = job.round,
                               .lasts = now - *job.first_success,
                               .interval = job.spec.fault_tolerance.job_exit_hang_interval};
    }
  }
  if (unsure && !answer.found) AskAll(now, *unsure, job, answer);
  return answer;
}

HangFound HangWatch::MakeFinding(const SilenceVerdict& verdict, Monotonic now, const JobState& job) const {
  HangFound found{.kind = HangKind::kSilence,
                  .round = job.round,
                  .lasts = now - verdict.since,
                  .interval = Interval(job),
                  .is_advancing = verdict.is_advancing};
  if (setting_ && setting_->interval) found.set_by = setting_->node;
  for (const NodeIndex node : NodesWithRanks(job)) {
    const auto known = nodes_.find(node);
    if (known == nodes_.end() || !known->second.quietest) continue;
    const Duration quiet = now - known->second.quietest_since;
    if (found.quietest && quiet <= found.quietest_for) continue;
    found.quietest = known->second.quietest;
    found.quietest_for = std::max(quiet, Duration::zero());
  }
  return found;
}

void HangWatch::AskAll(Monotonic now, Monotonic due, const JobState& job, Answer& answer) {
  // Every heartbeat of thousands of nodes comes here while answers are awaited.
  if (asked_ && *asked_ >= due && now - *asked_again_ < kAskAgain) return;
  const std::set<NodeIndex> nodes = NodesWithRanks(job);
  if (!asked_ || *asked_ < due) {
    ++number_;
    asked_ = now;
    unanswered_ = nodes;
  } else {
    std::erase_if(unanswered_, [&](NodeIndex node) { return !nodes.contains(node); });
  }
  if (unanswered_.empty()) all_heard_ = asked_;
  asked_again_ = now;
  answer.ask.assign(unanswered_.begin(), unanswered_.end());
  answer.number = number_;
}

std::optional<Monotonic> HangWatch::NextLook(const JobState& job) const {
  if (!IsWatched(job) || !up_since_ || paused_since_) return std::nullopt;
  std::optional<Monotonic> next;
  const auto at = [&](Monotonic due) {
    const bool waits = asked_ && *asked_ >= due && !unanswered_.empty();
    if (waits) due = *asked_again_ + kAskAgain;
    next = std::min(next.value_or(due), due);
  };
  if (LooksForSilence(job)) {
    const Monotonic since = Since();
    at((IsToldAdvancing(job) ? std::max(since, progressed_.value_or(since)) : since) + Interval(job));
  }
  if (LooksForExit(job)) at(*JudgeExitNow({}, job).due);
  return next;
}

}  // namespace aimaster
