#include "agent/log_watch.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "agent/limits.h"
#include "agent/log.h"
#include "agent/program_memory.h"
#include "core/clocks.h"

namespace aimaster::agent {
namespace {

// What an inner torchrun says at its end.
std::optional<TorchrunFailure> ReadTorchrunFailure(LogFile& file) {
  std::string tail(std::min<uint64_t>(file.size(), kLogTailMaxBytes), '\0');
  tail.resize(file.Read(file.size() - tail.size(), std::span(tail)));
  return FindTorchrunFailure(tail);
}

}  // namespace

LogWatch::LogWatch(boost::asio::io_context& io, PatternMatcher& matcher, std::string reserve_path,
                   std::function<void(AttemptKey)> on_ready)
    : matcher_(matcher), on_ready_(std::move(on_ready)), disk_(std::move(reserve_path)), timer_(io) {}

LogWatch::RankLog LogWatch::Open(const Claim& claim, uint32_t rank, uint32_t local) {
  const std::string name = "rank" + std::to_string(local);
  const std::string base = claim.log_directory + "/" + name;
  return {.rank = rank,
          .local = local,
          .counts_as_ready = false,
          .out = {LogFile(base + ".out", max_bytes_), LogScan(matcher_, name + ".out")},
          .err = {LogFile(base + ".err", max_bytes_), LogScan(matcher_, name + ".err")},
          .printed = WatchedUntil(MonotonicNow())};
}

void LogWatch::Add(const Claim& claim, bool is_ready) {
  Watched watched{.directory = claim.log_directory, .ranks = {}, .since = MonotonicNow(), .is_ready = is_ready};
  if (watched_.empty()) last_look_ = watched.since;
  for (const ClaimedRank& rank : claim.ranks) watched.ranks.push_back(Open(claim, rank.rank, rank.local));
  disk_.Open();
  may_read_ = kScanPerLook;
  const auto [added, is_new] = watched_.insert_or_assign(claim.key, std::move(watched));
  LookAt(claim.key, added->second);
  Schedule();
}

void LogWatch::RankEnded(AttemptKey key, uint32_t local, bool well) {
  const auto found = watched_.find(key);
  if (found == watched_.end()) return;
  for (RankLog& rank : found->second.ranks) {
    if (rank.local != local) continue;
    rank.has_ended = true;
    rank.counts_as_ready = rank.counts_as_ready || well;
  }
  LookAt(key, found->second);
}

void LogWatch::RankSpoke(AttemptKey key, uint32_t local) {
  const auto found = watched_.find(key);
  if (found == watched_.end() || found->second.is_ready) return;
  const auto rank = std::ranges::find(found->second.ranks, local, &RankLog::local);
  if (rank == found->second.ranks.end() || std::exchange(rank->counts_as_ready, true)) return;
  LookAt(key, found->second);
}

RankWords LogWatch::WordsOf(const Claim& claim, uint32_t local) {
  const Monotonic now = MonotonicNow();
  std::optional<RankLog> opened;
  RankLog* log = nullptr;
  if (const auto found = watched_.find(claim.key); found != watched_.end()) {
    const auto rank = std::ranges::find(found->second.ranks, local, &RankLog::local);
    if (rank != found->second.ranks.end()) log = &*rank;
  }
  if (log == nullptr) log = &opened.emplace(Open(claim, 0, local));
  LogScan::Said err = log->err.scan.ReadAll(log->err.file, now), out = log->out.scan.ReadAll(log->out.file, now);
  if (!matcher_.error().empty() && !std::exchange(told_matcher_error_, true)) LogError(matcher_.error());
  RankWords words{.matches = std::move(err.matches),
                  .last_line = err.last_line.empty() ? std::move(out.last_line) : std::move(err.last_line)};
  words.matches.insert(words.matches.end(), out.matches.begin(), out.matches.end());
  words.torchrun = ReadTorchrunFailure(log->err.file);
  if (!words.torchrun) words.torchrun = ReadTorchrunFailure(log->out.file);
  return words;
}

void LogWatch::Remove(AttemptKey key) {
  const auto found = watched_.find(key);
  if (found == watched_.end()) return;
  found->second.is_ready = true;  // an end is no readiness
  found->second.is_ending = LookAt(key, found->second);
  for (RankLog& rank : found->second.ranks) rank.has_ended = true;
  if (!found->second.is_ending) watched_.erase(found);
  Schedule();
}

void LogWatch::Look() {
  const Monotonic now = MonotonicNow();
  if (now - last_look_ > Duration(kLogUnseen)) away_ += now - last_look_;
  last_look_ = now;
  has_more_to_free_ = false;
  has_more_to_read_ = false;
  may_read_ = kScanPerLook;
  for (auto entry = watched_.begin(); entry != watched_.end();) {
    const bool has_more = LookAt(entry->first, entry->second);
    has_more_to_free_ = has_more_to_free_ || has_more;
    entry = entry->second.is_ending && !has_more ? watched_.erase(entry) : std::next(entry);
  }
  const double seconds = std::chrono::duration<double>(now - rate_since_).count();
  // All files together: an upper bound of any one, and cheaper to be right about.
  if (seconds * kRatesPerSecondMax >= 1) {
    bytes_per_second_ = static_cast<double>(activity_.bytes - bytes_then_) / seconds;
    bytes_then_ = activity_.bytes;
    rate_since_ = now;
  }
  if (matcher_.is_loaded() && !std::exchange(gave_pages_back_, true)) GiveBackReadOnlyPages();
  is_growing_fast_ = max_bytes_ > 0 && bytes_per_second_ > double{kLogFastBytesPerSecond};
  LookAtDisk(static_cast<uint64_t>(bytes_per_second_));
  Schedule();
}

// The output of all attempts of a job lies in one place: the job directory, or --log-dir.
void LogWatch::LookAtDisk(uint64_t bytes_per_second) {
  if (!watched_.empty()) disk_state_ = disk_.Look(watched_.rbegin()->second.directory, bytes_per_second);
}

bool LogWatch::LookAt(AttemptKey key, Watched& watched) {
  bool has_more = false;
  bool all_ready = true;
  for (RankLog& rank : watched.ranks) {
    for (Output* output : {&rank.out, &rank.err}) {
      has_more = LookAt(rank, *output) || has_more;
      rank.counts_as_ready = rank.counts_as_ready || output->file.has_output();
    }
    all_ready = all_ready && rank.counts_as_ready;
  }
  if (all_ready && !std::exchange(watched.is_ready, true)) on_ready_(key);
  return has_more;
}

bool LogWatch::LookAt(RankLog& rank, Output& output) {
  LogFile& file = output.file;
  const uint64_t grown = file.Look();
  const Monotonic now = MonotonicNow();
  if (grown > 0) {
    activity_.bytes += grown;
    activity_.last_output_wall_ns = std::max(activity_.last_output_wall_ns, file.last_output_wall_ns());
    // When it came the file system knows, whose clock may be another one, or have been set: it came between two looks.
    Duration ago = std::max<Duration>(WallNow().since_epoch - Duration(file.last_output_wall_ns()), Duration::zero());
    if (output.looked_at) ago = std::min(ago, now - *output.looked_at);
    rank.printed = std::max(rank.printed, Monotonic{WatchedUntil(now).since_origin - ago});
  }
  output.looked_at = now;
  has_more_to_read_ = output.scan.ReadOn(file, may_read_, now) || has_more_to_read_;
  return file.Bound(disk_state_ == DiskState::kScarce ? kScarceLogMaxBytes : 0);  // after it was read
}

LogActivity LogWatch::ActivityAt(Monotonic now) const {
  LogActivity activity = activity_;
  if (!watched_.empty()) activity.quiet = QuietOf(now);
  return activity;
}

LogActivity::Quiet LogWatch::QuietOf(Monotonic now) const {
  const Monotonic until = WatchedUntil(now);
  const auto since = [until](Monotonic printed) { return std::max(until - printed, Duration::zero()); };
  LogActivity::Quiet quiet{.silent = since(Monotonic{})};
  for (const auto& [key, watched] : watched_) {
    for (const RankLog& rank : watched.ranks) {
      quiet.silent = std::min(quiet.silent, since(rank.printed));
      if (rank.has_ended || (quiet.quietest_rank && since(rank.printed) <= quiet.quietest_silent)) continue;
      quiet.quietest_rank = rank.rank;
      quiet.quietest_silent = since(rank.printed);
    }
  }
  return quiet;
}

Duration LogWatch::NextDelay(Monotonic now) const {
  if (has_more_to_free_ || std::ranges::any_of(watched_, [](const auto& entry) { return entry.second.is_ending; })) {
    return Duration::zero();
  }
  const bool is_busy = is_growing_fast_ || has_more_to_read_ || disk_state_ != DiskState::kRoomy;
  Duration delay = is_busy ? Duration(kLogTickFast) : Duration(kLogTick);
  for (const auto& [key, watched] : watched_) {
    if (watched.is_ready) continue;
    const Duration age = now - watched.since;
    if (age < kReadyPollFirstFor) {
      delay = std::min<Duration>(delay, kReadyPollFirst);
    } else if (age < kReadyPollNextFor) {
      delay = std::min<Duration>(delay, kReadyPollNext);
    }
  }
  return delay;
}

void LogWatch::Schedule() {
  if (watched_.empty()) {
    timer_.Cancel();
  } else {
    timer_.After(NextDelay(MonotonicNow()), [this] { Look(); });
  }
}

}  // namespace aimaster::agent
