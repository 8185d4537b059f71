// AttemptLife holds one attempt: starts its shim or adopts it, hears each rank end, and sees to it that nothing is
// left. The shim does the work and keeps the truth on disk; this class only watches and tells. So an agent can die at
// any moment, and the next one reads the directory and tells the rest.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/attempt_files.h"
#include "agent/attempt_state.h"
#include "agent/core_dump_watch.h"
#include "agent/owed_files.h"
#include "agent/process_watch.h"
#include "agent/rank_report.h"
#include "agent/sweep.h"
#include "agent/timer.h"
#include "aimaster/v1/agent.pb.h"

namespace aimaster::agent {

class AttemptLife;

// Why an attempt is stopped: a master wants it, or there has been no master for so long.
struct StopReason {
  Duration orphaned{};
};

// What an attempt needs of its surroundings, and tells them. Nothing here may destroy the attempt.
class AttemptOwner {
 public:
  virtual ~AttemptOwner() = default;
  virtual boost::asio::io_context& io() = 0;
  virtual const std::string& boot_id() const = 0;
  virtual const std::string& shim_path() const = 0;
  virtual std::set<pid_t> LiveShims() const = 0;
  // Whether all that is live here, the asking attempt with it, may have the files open that it takes to watch it.
  virtual Status HasDescriptors() const = 0;
  // How a child of ours ended, as waitpid says it; nothing for strangers.
  virtual std::optional<int> WaitStatus(pid_t pid) = 0;
  // A rank has ended, just now; fills in what only the node knows.
  virtual void OnRankEnded(const AttemptLife& attempt, RankEnd& end) = 0;
  virtual void ReportRankEnd(const AttemptLife& attempt, const RankEnd& end) = 0;
  virtual void Report(v1::Report report) = 0;
  virtual void OnRunning(const AttemptLife& attempt) = 0;
  virtual void OnEnded(const AttemptLife& attempt) = 0;
};

class AttemptLife {
 public:
  AttemptLife(AttemptOwner& owner, AttemptDirectory directory, Claim claim);
  AttemptLife(const AttemptLife&) = delete;
  AttemptLife& operator=(const AttemptLife&) = delete;

  // Exactly one of these, once. Start: nothing of it was ever alive; `launch` is the shim's launch file, `files` what
  // the ranks need besides, by names within the directory.
  void Start(const std::string& launch, const std::map<std::string, std::string>& files = {});
  // Adopt: an earlier agent left it. What happened since is reported. Where nothing did, since that agent was gone
  // before there was a shim, it waits to be told once more that it shall start: whether it still shall, only a master
  // knows.
  void Adopt();
  // As Adopt, of one that can't be led: ends it at once. A rank that we have to end for it is lost, with this reason.
  void Condemn(std::string reason);
  // It was stopped before its start came: ended as soon as it is said, and never to be started.
  void EndUnstarted();

  // Whether it waits for its start, and nothing has been born meanwhile after all. Then this life may be replaced by
  // one that is started.
  bool MayStart();

  // Leaves a tombstone and tells the shim. Repeats are harmless.
  void Stop(StopReason reason, bool at_once);
  void Signal(int signal);
  // Says again all that is known.
  void ReportAll();
  // Asks the kernel for ranks that have just died. True as long as one is dead and its exit file is not there yet.
  bool DrainExits();
  // Of one that waits for what mpirun wants started: where a rank of MPI has failed under it, that is its own end from
  // now on, though it still waits. Only mpirun's own failure makes it one of the job.
  void CountMpiRanks();

  AttemptKey key() const { return claim_.key; }
  const Claim& claim() const { return claim_; }
  const AttemptDirectory& directory() const { return directory_; }
  bool has_ended() const { return state_ == AttemptState::kEnded; }
  // Whether a file that the next agent will look for could not be written yet; it is tried again.
  bool owes_file() const { return owed_.owes(); }
  pid_t shim_pid() const { return shim_watch_ ? shim_.pid : 0; }
  bool holds_master_port = false;
  uint16_t own_port = 0;
  void AppendLiveRanks(std::vector<LiveRank>& live) const;

 private:
  struct RankLife {
    ClaimedRank rank;
    ProcessIdentity process;  // pid 0: none known
    std::unique_ptr<ProcessWatch> watch;
    bool is_dead = false;
    std::optional<RankEnd> end;  // reported
  };

  Status PrepareDirectory(const std::string& launch, const std::map<std::string, std::string>& files);
  void Spawn();
  void LoseStart(std::string reason, int error);
  void WatchShim(const ProcessIdentity& shim);
  bool IsOurShim(const ProcessIdentity& holder) const;
  void AdoptHolder(pid_t holder);
  // False when nobody holds the lock. Otherwise it is seen to: a shim is adopted, anything else waited for.
  bool GoByLock();
  bool GoByStarted();
  bool IsStartedForUs(pid_t shim) const;
  void LookAgain(const std::string& trouble);
  bool IsUnreadable() const;
  void JudgeWithoutFiles();
  bool IsUnborn();
  void AwaitStart();

  void PollStarted();
  bool ReadStarted();
  void NoteStarted();

  void CollectExits();
  bool HasUnreportedDead() const;
  void CollectKeptExits();
  void SetRankEnd(RankLife& rank, RankEnd end);
  void LoseRank(RankLife& rank);

  void TellShim();
  void ExpectAnswer(Duration patience);
  void LookForAnswer();
  void Bury();
  void OnShimGone();
  std::string DescribeLoss(bool nothing_started) const;
  bool NothingStarted() const;
  void EndWithShim(const Ended& ended);
  SweepTarget Remnants() const;
  void BeginSweep();
  void SweepPass();
  void Finish(AttemptInput input);

  void ReportStarted();
  void ReportEnded();
  v1::AttemptId Id() const;
  std::string Name() const;  // for the log

  AttemptOwner& owner_;
  AttemptDirectory directory_;
  Claim claim_;
  AttemptState state_ = AttemptState::kClaimed;
  std::vector<RankLife> ranks_;
  ProcessIdentity shim_;
  std::unique_ptr<ProcessWatch> shim_watch_;
  std::optional<int> shim_status_;  // as waitpid says it, where it was our child
  std::optional<Started> started_;
  std::string lost_reason_;
  int start_errno_ = 0;  // with it: what the system said, when nothing was started for want of something
  Monotonic spawn_until_;
  bool never_ran_ = false;  // stopped before anything was started: there are no ranks to report
  struct StopOrder {
    StopReason reason;
    bool at_once = false;
  };
  std::optional<StopOrder> stop_;
  bool was_stopped_ = false;
  bool has_buried_ = false;  // the tombstone is ours, and nobody's wish
  bool waits_for_start_ = false;
  std::string condemned_;  // why it was ended without having failed
  std::string trouble_, told_trouble_;
  std::optional<Monotonic> unreadable_since_;
  bool expects_answer_ = false;  // of the shim, to an order to stop
  bool was_deaf_ = false;        // and was killed for it
  int empty_passes_ = 0;
  Duration started_delay_{};
  Duration exit_delay_{};
  Duration sweep_delay_{};
  Monotonic ask_kept_at_;
  Monotonic poll_since_;
  Timer started_timer_;
  Timer exit_timer_;
  Timer sweep_timer_;
  Timer answer_timer_;
  OwedFiles owed_;
};

}  // namespace aimaster::agent
