// An attempt that an earlier agent left: who lives there, and what became of it meanwhile. The lock says who lives; the
// documents say the rest, as far as they can be read.
#include <cstring>
#include <utility>

#include "agent/attempt_life.h"
#include "agent/limits.h"
#include "agent/log.h"
#include "agent/small_file.h"
#include "core/clocks.h"
#include "shim/launch_format.h"

namespace aimaster::agent {

void AttemptLife::Adopt() {
  if (GoByLock() || GoByStarted()) return;
  const auto ended = directory_.ReadEnded();
  if (ended) {
    if (ReadStarted()) NoteStarted();
    EndWithShim(*ended);
  } else if (ended.error() == Unread::kUnreadable) {
    LookAgain("ended.json can't be read");
  } else if (claim_.boot_id != owner_.boot_id()) {
    // No process outlives its machine, and its pids mean others now.
    lost_reason_ = "the node was restarted";
    state_ = Next(state_, AttemptInput::kShimLost);
    shim_ = {};
    CollectExits();
    Finish(AttemptInput::kSwept);
  } else if (IsUnborn()) {
    AwaitStart();
  } else {
    OnShimGone();
  }
}

void AttemptLife::Condemn(std::string reason) {
  LogError(Name() + ": " + reason + "; it is ended");
  condemned_ = std::move(reason);
  Adopt();
  Stop({}, true);
}

void AttemptLife::EndUnstarted() {
  never_ran_ = true;
  state_ = Next(Next(state_, AttemptInput::kShimLost), AttemptInput::kSwept);
  Bury();
  ReportEnded();
}

// The lock first, and the files that only a shim makes; then a look at all processes, for who lost them all. A shim
// that was spawned and has not come to its lock yet is not seen, and need not be: of two that come to one directory,
// the lock lets one start, and what that one leaves behind sends the other away.
bool AttemptLife::IsUnborn() {
  if (was_stopped_ || directory_.HasTombstone() || directory_.HasBegun()) return false;
  const auto remnants = CountRemnants(Remnants());
  return remnants && *remnants == 0;
}

void AttemptLife::AwaitStart() {
  if (!std::exchange(waits_for_start_, true)) {
    LogInfo(Name() + ": was to be started, and nothing of it ever lived; it waits for the order to start");
  }
  started_timer_.After(kFileRetry, [this] {
    if (MayStart()) AwaitStart();
  });
}

bool AttemptLife::MayStart() {
  if (!waits_for_start_) return false;
  if (directory_.Lock().state == ShimLock::State::kFree && !directory_.HasBegun()) return true;
  waits_for_start_ = false;
  started_timer_.Cancel();
  Adopt();
  return false;
}

bool AttemptLife::GoByLock() {
  const ShimLock lock = directory_.Lock();
  switch (lock.state) {
    case ShimLock::State::kFree:
      return false;
    case ShimLock::State::kHeld:
      AdoptHolder(lock.holder);
      return true;
    case ShimLock::State::kUnknown:
      LookAgain("its lock can't be asked for: " + std::string(std::strerror(lock.error)));
      return true;
  }
  return false;
}

// A lock that was removed or replaced is free, and its shim may live all the same: then it is the one that says so of
// itself in started.json, and that was started for this directory.
bool AttemptLife::GoByStarted() {
  const auto started = directory_.ReadStarted();
  if (!started || started->boot_id != owner_.boot_id() || !IsAlive(started->shim)) return false;
  if (!IsStartedForUs(started->shim.pid)) return false;
  LogWarning(Name() + ": its lock is free, though its shim, process " + std::to_string(started->shim.pid) +
             ", lives: the lock was removed or replaced; going by the process");
  WatchShim(started->shim);
  return true;
}

bool AttemptLife::IsStartedForUs(pid_t shim) const {
  const auto line = ReadSmallFile("/proc/" + std::to_string(shim) + "/cmdline", kSmallFileMaxBytes);
  return line && line->ends_with('\0' + directory_.path() + '\0');
}

// By what it said of itself when it started, or by what it was started for.
bool AttemptLife::IsOurShim(const ProcessIdentity& holder) const {
  const auto started = directory_.ReadStarted();
  return !started || started->shim == holder || IsStartedForUs(holder.pid);
}

void AttemptLife::AdoptHolder(pid_t holder) {
  const auto stat = holder > 0 ? ReadStat(holder) : std::nullopt;
  const ProcessIdentity shim{holder, stat ? stat->start_ticks : 0};
  if (!stat || !IsOurShim(shim)) {
    // Released in this very moment, or held by someone whom we can't see or don't know.
    LookAgain("its lock is held by an unknown process " + std::to_string(holder));
    return;
  }
  WatchShim(shim);
  // The lock is the proof, and it has to be a proof of the process that we hold now.
  const ShimLock lock = directory_.Lock();
  if (shim_watch_ && (lock.state != ShimLock::State::kHeld || lock.holder != holder)) {
    shim_watch_.reset();
    LookAgain("its lock changes hands");
  }
}

// Something can't be read, or not made sense of, in this moment.
void AttemptLife::LookAgain(const std::string& trouble) {
  const bool again = std::exchange(trouble_, trouble) == trouble;
  if (again && std::exchange(told_trouble_, trouble) != trouble) LogWarning(Name() + ": " + trouble + "; waiting");
  started_timer_.After(again ? Duration(kFileRetry) : Duration(kPollFast), [this] {
    if (!IsUnreadable()) {
      unreadable_since_.reset();
    } else if (!unreadable_since_) {
      unreadable_since_ = MonotonicNow();
    } else if (MonotonicNow() - *unreadable_since_ >= kUnreadableMax) {
      JudgeWithoutFiles();
      return;
    }
    if (!GoByLock()) OnShimGone();
  });
}

bool AttemptLife::IsUnreadable() const {
  const ShimLock lock = directory_.Lock();
  if (lock.state != ShimLock::State::kFree) return lock.state == ShimLock::State::kUnknown;
  const auto ended = directory_.ReadEnded();
  return !ended && ended.error() == Unread::kUnreadable;
}

// It has been so for long, and somebody waits for this attempt: what else is known of it has to do.
void AttemptLife::JudgeWithoutFiles() {
  const auto started = directory_.ReadStarted();
  if (started && started->boot_id == owner_.boot_id() && IsAlive(started->shim)) {
    LogWarning(Name() + ": " + trouble_ + "; going by the process that started.json names");
    WatchShim(started->shim);
    return;
  }
  lost_reason_ = trouble_;
  Bury();
  CollectExits();
  BeginSweep();
}

// From now on it can't be started, whoever comes.
void AttemptLife::Bury() {
  if (!has_buried_ && directory_.HasTombstone()) return;
  if (!std::exchange(has_buried_, true)) owed_.Write(directory_.File(AIMASTER_FILE_TOMBSTONE), FormatTombstone(key()));
}

}  // namespace aimaster::agent
