// CommunicationWatch: what the records of all ranks say about who hangs (c4d/hangs.h) and who is slow
// (master/slowness_watch.h), put together in the master. It decides nothing: what it concludes is journaled, and the
// engine decides.
//
//   heartbeats: "here somebody has waited for 11 s" ──▶ all nodes are asked ──▶ their records ──FindHangs──▶ verdicts
//
// Agents say once a second for how long somebody waits on their node. Only when that is longer than C4D_HANG_TIMEOUT
// are the records themselves asked for, of all nodes, and again every second as long as it lasts. Nodes answer at
// moments that lie a little apart, in which a rank may have gone on, so a verdict counts once two answers in a row
// agree.
//
// All of it is soft: a master that takes over learns it again. Until it could know who is slow, those count who were.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "aimaster/v1/agent.pb.h"
#include "c4d/record_observation.h"
#include "c4d/verdict.h"
#include "engine/job_state.h"
#include "master/slowness_watch.h"

namespace aimaster {

class CommunicationWatch {
 public:
  // Answers are waited for no longer than this; who has not answered is not seen.
  static constexpr Duration kAnswerMax = std::chrono::seconds{2};
  static constexpr Duration kLookAgain = std::chrono::seconds{1};
  static constexpr Duration kLookTwice = std::chrono::milliseconds{200};  // to see whether what was seen is so
  // All ranks have run for so long, and none has begun to communicate: perhaps nothing is loaded into them.
  static constexpr Duration kNoDataAfter = std::chrono::seconds{30};

  explicit CommunicationWatch(Epoch epoch) : number_(Value(epoch) << 32) {}

  void Heard(Monotonic now, NodeIndex node, const v1::Heartbeat& heartbeat, const JobState& job);
  void Take(NodeIndex node, const v1::Records& records, const JobState& job);

  struct Answer {
    std::optional<CommunicationJudged> judged;
    std::vector<NodeIndex> ask;  // for their records
    uint64_t number = 0;         // of that question
  };
  Answer Look(Monotonic now, const JobState& job);
  // When to look again if nothing is heard before.
  std::optional<Monotonic> NextLook(const JobState& job) const;

 private:
  struct Hearing {
    Monotonic heard;
    uint32_t processes = 0;
    std::optional<Duration> longest_wait;  // then
  };
  using Verdicts = std::vector<CommunicationVerdict>;

  void Follow(const JobState& job);
  // What stays as it is for long is looked at less often.
  Duration Pause() const { return !is_settled_ ? kLookTwice : kLookAgain * (1 + std::min(unchanged_ / 10, 4u)); }
  bool AllAreHeard(const JobState& job) const;
  // When somebody will have waited for as long as C4D_HANG_TIMEOUT, unless it goes on; none: nobody waits by then.
  std::optional<Monotonic> StuckAt(const JobState& job) const;
  bool IsNothingRecorded(Monotonic now, const JobState& job) const;
  void Ask(const JobState& job, Answer& answer);
  Verdicts Conclude(const JobState& job);
  CommunicationVerdict Translate(const c4d::Verdict& verdict, const std::map<Rank, InstanceIndex>& places,
                                 const JobState& job) const;
  // Tells what is new, hangs once they have been found twice.
  void Settle(Monotonic now, Verdicts hangs, const JobState& job, Answer& answer);
  void LookForSlowness(Monotonic now, const JobState& job);

  // The life of the job that all this is about: a round, or another start of it in place.
  Round round_{};
  std::optional<Monotonic> ranks_started_;

  std::map<NodeIndex, Hearing> nodes_;
  std::optional<Monotonic> looked_;  // last, and asked then, if anybody was to be
  uint64_t number_;                  // of the last question
  bool is_waiting_ = false;          // for answers to it
  std::set<NodeIndex> unanswered_;
  struct Taken {
    InstanceIndex instance{};
    c4d::Hold hold = c4d::Hold::kFree;
    c4d::Record record;
  };
  std::vector<Taken> records_;     // that were answered
  std::optional<Verdicts> last_;   // hangs that were concluded; none: nothing was, in this life
  bool is_settled_ = true;         // they were concluded twice
  uint32_t unchanged_ = 0;         // how often that was so since
  std::optional<Monotonic> told_;  // when something was told

  SlownessWatch slowness_;
  Verdicts slow_;  // those that hold
};

}  // namespace aimaster
