#include "agent/attempt_life.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "agent/error_file.h"
#include "agent/limits.h"
#include "agent/log.h"
#include "agent/mpi_launch.h"
#include "agent/shim_process.h"
#include "agent/small_file.h"
#include "core/clocks.h"
#include "detect/rule_table.h"
#include "shim/launch_format.h"

namespace aimaster::agent {
namespace {

constexpr int kEmptyPassesWanted = 2;  // one alone can miss a child whose parent was listed after it had gone

// Fast while the answer is due any moment, slower when it is late.
Duration NextPoll(Duration delay, Duration waited) {
  if (waited > kPollFastFor) return kPollSlow;
  return std::min<Duration>(delay * 3 / 2, kPollFast);
}

// What the shim lacked when it ended before it had started anyone; 0: nothing, or nobody knows.
int WantOf(const std::optional<int>& status) {
  if (!status || !WIFEXITED(*status)) return 0;
  switch (WEXITSTATUS(*status)) {
    case kShimExitSystem:
      return EAGAIN;
    case kShimExitCantCreate:
    case kShimExitInputOutput:
      return ENOSPC;
    default:
      return 0;
  }
}

std::string DescribeStatus(int status) {
  if (WIFSIGNALED(status)) return "was killed by signal " + std::to_string(WTERMSIG(status));
  return "ended with code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

AttemptLife::AttemptLife(AttemptOwner& owner, AttemptDirectory directory, Claim claim)
    : owner_(owner),
      directory_(std::move(directory)),
      claim_(std::move(claim)),
      started_timer_(owner.io()),
      exit_timer_(owner.io()),
      sweep_timer_(owner.io()),
      answer_timer_(owner.io()),
      owed_(owner.io()) {
  for (const ClaimedRank& rank : claim_.ranks) ranks_.push_back(RankLife{.rank = rank});
}

// ---- start ----

void AttemptLife::Start(const std::string& launch, const std::map<std::string, std::string>& files) {
  if (const Status prepared = PrepareDirectory(launch, files); !prepared) {
    LoseStart(prepared.error().message, errno);  // it failed in a system call of this moment
    return;
  }
  if (const Status room = owner_.HasDescriptors(); !room) {
    LoseStart(room.error().message, EMFILE);
    return;
  }
  spawn_until_ = MonotonicNow() + kSpawnPatience;
  Spawn();
}

// What is used up now may not be in a moment: processes of an earlier round are still dying, say.
void AttemptLife::Spawn() {
  if (was_stopped_ || directory_.HasTombstone()) {
    OnShimGone();
    return;
  }
  const std::expected<ProcessIdentity, int> shim = SpawnShim(owner_.shim_path(), directory_);
  if (shim) {
    WatchShim(*shim);
  } else if (IsWantOfResources(shim.error()) && MonotonicNow() < spawn_until_) {
    started_timer_.After(kSpawnRetry, [this] { Spawn(); });
  } else {
    LoseStart("cannot start " + owner_.shim_path() + ": " + std::strerror(shim.error()), shim.error());
  }
}

void AttemptLife::LoseStart(std::string reason, int error) {
  lost_reason_ = std::move(reason);
  start_errno_ = IsWantOfResources(error) ? error : 0;
  BeginSweep();
}

Status AttemptLife::PrepareDirectory(const std::string& launch, const std::map<std::string, std::string>& files) {
  // The claim comes first: from here on, whoever finds the directory knows that somebody may be living in it.
  if (const Status made = MakeDirectories(directory_.path()); !made) return made;
  if (const Status claimed = WriteSmallFile(directory_.File("claim.json"), FormatClaim(claim_)); !claimed)
    return claimed;
  if (const Status made = MakeDirectories(claim_.log_directory); !made) return made;
  for (const auto& [name, content] : files) {
    const std::string path = directory_.File(name);
    if (const Status made = MakeDirectories(path.substr(0, path.rfind('/'))); !made) return made;
    if (const Status written = WriteSmallFile(path, content); !written) return written;
  }
  return WriteSmallFile(directory_.File(AIMASTER_FILE_LAUNCH), launch);
}

void AttemptLife::WatchShim(const ProcessIdentity& shim) {
  shim_ = shim;
  shim_status_.reset();
  shim_watch_ = ProcessWatch::Open(owner_.io(), shim, [this] { OnShimGone(); });
  if (!shim_watch_) {  // gone already
    started_timer_.After(kPollFast, [this] { OnShimGone(); });
    return;
  }
  trouble_.clear();
  unreadable_since_.reset();
  if (stop_) TellShim();
  if (started_) return;
  started_delay_ = kPollFirst;
  poll_since_ = MonotonicNow();
  PollStarted();
}

void AttemptLife::PollStarted() {
  if (ReadStarted()) {
    NoteStarted();
    CollectExits();
    return;
  }
  started_timer_.After(started_delay_, [this] { PollStarted(); });
  started_delay_ = NextPoll(started_delay_, MonotonicNow() - poll_since_);
}

void AttemptLife::NoteStarted() {
  state_ = Next(state_, AttemptInput::kStarted);
  ReportStarted();
  owner_.OnRunning(*this);
}

// Takes the ranks' identities over; false when the file is not there yet.
bool AttemptLife::ReadStarted() {
  auto document = directory_.ReadStarted();
  if (!document) {
    const bool is_damaged = document.error() == Unread::kGarbage && shim_watch_;
    if (!is_damaged || MonotonicNow() - poll_since_ < kUnreadableMax) return false;
    LogWarning(Name() + ": started.json is damaged; the ends of its ranks are heard of by their files alone");
    document = Started{.shim = shim_, .boot_id = owner_.boot_id(), .ranks = {}};
  }
  started_ = std::move(*document);
  for (const StartedRank& started : started_->ranks) {
    const auto rank =
        std::ranges::find(ranks_, started.rank.local, [](const RankLife& life) { return life.rank.local; });
    if (rank != ranks_.end()) rank->process = started.process;
  }
  for (size_t i = 0; i < ranks_.size(); ++i) {
    RankLife& rank = ranks_[i];
    if (rank.process.pid != 0 && started_->boot_id == owner_.boot_id()) {
      rank.watch = ProcessWatch::Open(owner_.io(), rank.process, [this, i] {
        ranks_[i].is_dead = true;
        CollectExits();
      });
    }
    rank.is_dead = !rank.watch;
  }
  return true;
}

// ---- ranks end ----

// The shim writes an exit file within moments of the death; while it lives, there is one to wait for.
void AttemptLife::CollectExits() {
  for (RankLife& rank : ranks_) {
    if (rank.end) continue;
    auto exit = rank.is_dead || !shim_watch_ ? directory_.ReadRankExit(rank.rank.local) : std::nullopt;
    if (exit) SetRankEnd(rank, RankEnd{.rank = rank.rank, .exit = std::move(exit)});
  }
  if (!HasUnreportedDead() || !shim_watch_) {
    exit_timer_.Cancel();
    exit_delay_ = Duration::zero();
    return;
  }
  if (exit_delay_ == Duration::zero()) {
    exit_delay_ = kPollFirst;
    poll_since_ = MonotonicNow();
    ask_kept_at_ = poll_since_ + kKeptExitsEvery;
  }
  exit_timer_.After(exit_delay_, [this] {
    exit_delay_ = NextPoll(exit_delay_, MonotonicNow() - poll_since_);
    if (MonotonicNow() >= ask_kept_at_) CollectKeptExits();
    CollectExits();
  });
}

// The file system may take nothing any more; what the shim has in its memory will not be in a file when it ends.
void AttemptLife::CollectKeptExits() {
  ask_kept_at_ = MonotonicNow() + kKeptExitsEvery;
  auto kept = ReadKeptExits(shim_.pid);
  for (RankLife& rank : ranks_) {
    const auto exit = rank.is_dead && !rank.end ? kept.find(rank.rank.local) : kept.end();
    if (exit == kept.end()) continue;
    LogWarning(Name() + ": took the exit of rank " + std::to_string(rank.rank.rank) +
               " from the shim's memory, since its file is not there");
    SetRankEnd(rank, RankEnd{.rank = rank.rank, .exit = std::move(exit->second)});
  }
}

bool AttemptLife::HasUnreportedDead() const {
  return std::ranges::any_of(ranks_, [](const RankLife& rank) { return rank.is_dead && !rank.end; });
}

bool AttemptLife::DrainExits() {
  if (has_ended()) return false;
  for (RankLife& rank : ranks_) {
    if (rank.watch && rank.watch->IsDead()) rank.is_dead = true;
  }
  if (HasUnreportedDead()) CollectExits();
  return HasUnreportedDead();
}

void AttemptLife::CountMpiRanks() {
  if (has_ended() || !IsMpiStation(directory_)) return;
  for (RankLife& rank : ranks_) {
    auto end = rank.end ? std::nullopt : FindMpiRankEnd(directory_, rank.rank, MonotonicNow());
    if (end) SetRankEnd(rank, *std::move(end));
  }
}

void AttemptLife::SetRankEnd(RankLife& rank, RankEnd end) {
  if (!condemned_.empty() && end.exit && end.exit->stopped_by_us) {
    end = RankEnd{.rank = end.rank, .lost_reason = condemned_};
  }
  rank.is_dead = true;
  rank.end = std::move(end);
  rank.watch.reset();
  owner_.OnRankEnded(*this, *rank.end);
  owner_.ReportRankEnd(*this, *rank.end);
}

// Of whom nothing can be known any more but why.
void AttemptLife::LoseRank(RankLife& rank) {
  SetRankEnd(rank, RankEnd{.rank = rank.rank, .lost_reason = lost_reason_, .exec_errno = start_errno_});
}

// ---- the shim ends ----

void AttemptLife::OnShimGone() {
  shim_watch_.reset();
  started_timer_.Cancel();
  answer_timer_.Cancel();
  expects_answer_ = false;
  if (shim_.pid != 0 && !shim_status_) shim_status_ = owner_.WaitStatus(shim_.pid);
  if (GoByLock()) return;
  if (!started_ && ReadStarted()) NoteStarted();
  const auto ended = directory_.ReadEnded();
  if (ended) {
    EndWithShim(*ended);
    return;
  }
  if (ended.error() == Unread::kUnreadable) {
    LookAgain("ended.json can't be read");
    return;
  }
  // Before looking for the living, see to it that nobody is born: a shim that was spawned and has not come to its lock
  // yet will find the tombstone there; one that has it by now is seen here.
  was_stopped_ = was_stopped_ || (!has_buried_ && directory_.HasTombstone());
  Bury();
  if (GoByLock()) return;
  CollectExits();
  const bool nothing_started = NothingStarted();
  never_ran_ = nothing_started && was_stopped_;
  if (!never_ran_) lost_reason_ = DescribeLoss(nothing_started);
  if (nothing_started) start_errno_ = WantOf(shim_status_);
  BeginSweep();
}

bool AttemptLife::NothingStarted() const {
  return !started_ && !directory_.HasBegun() &&
         std::ranges::none_of(ranks_, [](const RankLife& rank) { return rank.end.has_value(); });
}

std::string AttemptLife::DescribeLoss(bool nothing_started) const {
  if (!condemned_.empty()) return condemned_;
  if (was_deaf_) return "its shim did not react to a stop at once and was killed";
  std::string reason = nothing_started ? "it could not be started, its shim " : "its shim ";
  reason += shim_status_ ? DescribeStatus(*shim_status_) : "is gone without a word";
  const std::string log = ReadSmallFile(directory_.File("shim.log"), kSmallFileMaxBytes).value_or("");
  const size_t end = log.find_last_not_of('\n');
  if (end != std::string::npos) {
    const size_t before = log.rfind('\n', end);
    const size_t start = before == std::string::npos ? 0 : before + 1;
    reason += ": " + SafeText(std::string_view(log).substr(start, end + 1 - start));
  }
  return reason;
}

void AttemptLife::EndWithShim(const Ended& ended) {
  lost_reason_ = ended.lost_reason.empty() ? condemned_ : ended.lost_reason;
  CollectExits();
  never_ran_ = ended.lost_reason.empty() && NothingStarted();
  for (RankLife& rank : ranks_) {
    if (rank.end || never_ran_) continue;
    SetRankEnd(rank, RankEnd{.rank = rank.rank,
                             .lost_reason = lost_reason_.empty() ? "its exit status was not recorded" : lost_reason_});
  }
  if (condemned_.empty()) {
    Finish(AttemptInput::kShimEnded);
  } else {
    BeginSweep();  // whose shim this was is not sure: what runs under the attempt's name may have had another one
  }
}

void AttemptLife::BeginSweep() {
  state_ = Next(state_, AttemptInput::kShimLost);
  if (!lost_reason_.empty()) LogError(Name() + ": lost: " + lost_reason_);
  sweep_delay_ = kSweepFirst;
  // Not from inside a caller's call: what it finds is reported, and the caller may not be ready for reports.
  sweep_timer_.After(Duration::zero(), [this] { SweepPass(); });
}

SweepTarget AttemptLife::Remnants() const {
  return {.job_id = claim_.job_id,
          .instance_name = claim_.instance_name,
          .attempt = claim_.key.attempt,
          .shim = shim_.pid == 0 && started_ ? started_->shim : shim_,
          .descendants = directory_.ReadDescendants(),
          .own_pid = ::getpid(),
          .own_children = owner_.LiveShims()};
}

void AttemptLife::SweepPass() {
  const auto found = SweepOnce(Remnants());
  if (!found) {  // who can't look has found nothing out
    if (told_trouble_.empty()) {
      told_trouble_ = std::strerror(found.error());
      LogWarning(Name() + ": can't look for what it left behind: " + told_trouble_);
    }
    sweep_timer_.After(kSweepMax, [this] { SweepPass(); });
    return;
  }
  CollectExits();
  for (RankLife& rank : ranks_) {
    if (rank.end || never_ran_ || (rank.process.pid != 0 && IsAlive(rank.process))) continue;
    LoseRank(rank);
  }
  empty_passes_ = *found == 0 ? empty_passes_ + 1 : 0;
  if (empty_passes_ == kEmptyPassesWanted) {
    Finish(AttemptInput::kSwept);
    return;
  }
  if (*found > 0) LogInfo(Name() + ": killed " + std::to_string(*found) + " processes that it left behind");
  sweep_timer_.After(sweep_delay_, [this] { SweepPass(); });
  sweep_delay_ = *found == 0 ? Duration(kSweepFirst) : std::min<Duration>(sweep_delay_ * 2, kSweepMax);
}

void AttemptLife::Finish(AttemptInput input) {
  state_ = Next(state_, input);
  exit_timer_.Cancel();
  started_timer_.Cancel();
  if (input == AttemptInput::kSwept) {
    for (RankLife& rank : ranks_) {
      if (!rank.end && !never_ran_) LoseRank(rank);
    }
    owed_.Write(directory_.File(AIMASTER_FILE_ENDED), FormatEnded({lost_reason_}, WallNow().since_epoch.count()));
  }
  LogInfo(Name() + ": ended" + (lost_reason_.empty() ? "" : ", lost: " + lost_reason_));
  ReportEnded();
  owner_.OnEnded(*this);
}

// ---- orders ----

void AttemptLife::Stop(StopReason reason, bool at_once) {
  if (has_ended()) return;
  was_stopped_ = true;
  if (!stop_ || at_once || !stop_->at_once) stop_ = {reason, at_once};
  Bury();
  if (std::exchange(waits_for_start_, false)) {
    OnShimGone();
    return;
  }
  TellShim();
}

void AttemptLife::TellShim() {
  const int64_t orphaned_ms = std::chrono::ceil<std::chrono::milliseconds>(stop_->reason.orphaned).count();
  if (orphaned_ms > 0 && shim_watch_) {
    shim_watch_->SignalWith(SIGTERM, static_cast<int>(std::min<int64_t>(orphaned_ms, std::numeric_limits<int>::max())));
  }
  if (orphaned_ms == 0) Signal(stop_->at_once ? SIGQUIT : SIGTERM);
  Signal(SIGCONT);  // a shim that somebody stopped hears nothing
  ExpectAnswer(stop_->at_once ? kShimDeafToStopAtOnce : kShimDeafToStop);
}

void AttemptLife::ExpectAnswer(Duration patience) {
  if (std::exchange(expects_answer_, true)) return;
  answer_timer_.After(patience, [this] {
    expects_answer_ = false;
    LookForAnswer();
  });
}

// The shim takes its orders from a signalfd. One that stays pending was not taken: the shim is stopped, traced, stuck
// in the kernel or gone wild, and will not do what it is there for. Its ranks die with it; the sweep sees to the rest.
void AttemptLife::LookForAnswer() {
  if (!shim_watch_) return;
  const auto status = ReadSmallFile("/proc/" + std::to_string(shim_.pid) + "/status", kSmallFileMaxBytes);
  if (!status || IsPending(*status, SIGQUIT)) {
    if (status && !std::exchange(was_deaf_, true)) {
      LogError(Name() + ": its shim, process " + std::to_string(shim_.pid) +
               ", does not react to a stop at once; killing it");
    }
    if (status) Signal(SIGKILL);
    ExpectAnswer(kShimDeafToStopAtOnce);
  } else if (IsPending(*status, SIGTERM)) {
    LogError(Name() + ": its shim, process " + std::to_string(shim_.pid) + ", does not react to a stop");
    Signal(SIGQUIT);
    ExpectAnswer(kShimDeafToStopAtOnce);
  }
}

void AttemptLife::Signal(int signal) {
  if (shim_watch_) shim_watch_->Signal(signal);
}

// ---- reports ----

void AttemptLife::ReportAll() {
  if (started_) ReportStarted();
  for (RankLife& rank : ranks_) {
    if (rank.end) owner_.ReportRankEnd(*this, *rank.end);
  }
  if (has_ended()) ReportEnded();
}

void AttemptLife::ReportStarted() {
  v1::Report report;
  v1::AttemptStarted& started = *report.mutable_attempt_started();
  *started.mutable_id() = Id();
  started.set_shim_pid(started_->shim.pid);
  for (const RankLife& rank : ranks_) started.add_rank_pids(rank.process.pid);
  owner_.Report(std::move(report));
}

void AttemptLife::ReportEnded() {
  v1::Report report;
  *report.mutable_attempt_ended()->mutable_id() = Id();
  report.mutable_attempt_ended()->set_lost_reason(lost_reason_);
  owner_.Report(std::move(report));
}

void AttemptLife::AppendLiveRanks(std::vector<LiveRank>& live) const {
  for (const RankLife& rank : ranks_) {
    if (!rank.end && rank.process.pid != 0) live.push_back({claim_.key, rank.rank, rank.process});
  }
}

v1::AttemptId AttemptLife::Id() const {
  v1::AttemptId id;
  id.set_instance(claim_.key.instance);
  id.set_attempt(claim_.key.attempt);
  return id;
}

std::string AttemptLife::Name() const {
  return claim_.instance_name + " attempt " + std::to_string(claim_.key.attempt);
}

}  // namespace aimaster::agent
