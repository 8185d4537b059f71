// HangWatch: what the agents' heartbeats say about whether the job stands still, put together for the detectors
// (detect/log_silence.h, detect/exit_hang.h). It decides nothing: what it finds is journaled, and the engine decides.
//
// Think of a night watchman who is told by every door once a second how long it has been quiet behind it. When all have
// been quiet for long enough by what he was told, he knocks at every door once more before he raises the alarm: what
// was true a second ago need not be true now. So nothing that was printed in time is missed, and the alarm comes a
// knock after the interval, not a heartbeat after it.
//
// All of it is soft. A master that takes over learns it again, since agents say for how long it has been quiet, and not
// only what is new.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "aimaster/v1/agent.pb.h"
#include "detect/exit_hang.h"
#include "detect/log_silence.h"
#include "engine/job_state.h"

namespace aimaster {

class HangWatch {
 public:
  // A node that has not been heard for so long is suspect: whether it is quiet there, nobody knows.
  static constexpr Duration kSuspectAfter = std::chrono::seconds{3};
  // A node that was asked and has not answered is asked again after this.
  static constexpr Duration kAskAgain = std::chrono::seconds{1};

  explicit HangWatch(Epoch epoch) : number_(Value(epoch) << 32) {}

  void Heard(Monotonic now, NodeIndex node, const v1::Heartbeat& heartbeat, const JobState& job);
  // About once a second: has a node fallen silent?
  void Watch(Monotonic now, const JobState& job);

  struct Answer {
    std::optional<HangFound> found;
    std::vector<NodeIndex> ask;  // to look now
    uint64_t number = 0;         // of that question
  };
  // What follows from what is known now. A hang is found once in a life of the job.
  Answer Look(Monotonic now, const JobState& job);
  // Since when nothing is concluded as these nodes are not heard; none: all are.
  std::optional<Monotonic> paused_since() const { return paused_since_; }
  const std::set<NodeIndex>& suspects() const { return suspects_; }
  // When to look again if nothing is heard before.
  std::optional<Monotonic> NextLook(const JobState& job) const;

 private:
  struct Hearing {
    std::optional<Monotonic> heard;
    Monotonic printed;        // a rank there, last
    Duration printed_from{};  // on the node's own clock: which of its reports says so
    std::optional<Rank> quietest;
    Monotonic quietest_since;
    v1::HangSetting setting;  // the last one that it told, of whatever round
  };
  struct Setting {  // by a rank, through the SDK
    NodeIndex node{};
    std::optional<Duration> interval;  // zero: no detection; none: the flag's again
    Monotonic set_at;
  };

  void Follow(Monotonic now, const JobState& job);
  void Forget();
  bool LooksForSilence(const JobState& job) const;
  bool LooksForExit(const JobState& job) const;
  Duration Interval(const JobState& job) const;
  Monotonic Since() const;
  bool IsToldAdvancing(const JobState& job) const;

  void TakeOutput(Monotonic now, NodeIndex node, const v1::Heartbeat& heartbeat);
  void TakeSetting(Monotonic now, NodeIndex node, const v1::Heartbeat& heartbeat, const JobState& job);
  void TakeAnswer(NodeIndex node, uint64_t look);
  void Resume(Monotonic now);
  void AskAll(Monotonic now, Monotonic due, const JobState& job, Answer& answer);
  SilenceVerdict JudgeSilenceNow(Monotonic now, const JobState& job) const;
  ExitVerdict JudgeExitNow(Monotonic now, const JobState& job) const;
  HangFound MakeFinding(const SilenceVerdict& verdict, Monotonic now, const JobState& job) const;

  // The life of the job that all this is about: a round, or another start of it in place.
  Round round_{};
  std::optional<Monotonic> ranks_started_;
  std::optional<Monotonic> up_since_;  // the last rank's exec; none: not all of them run
  bool has_found_ = false;
  uint32_t ended_ = 0;  // ranks
  std::optional<Monotonic> told_advancing_;

  Monotonic counts_from_;
  std::optional<Monotonic> printed_, progressed_;
  std::optional<NodeIndex> printed_on_;
  std::optional<Setting> setting_;

  std::map<NodeIndex, Hearing> nodes_;
  std::optional<Monotonic> began_;         // to watch
  std::set<NodeIndex> suspects_;           // nodes with ranks that have not been heard lately
  std::optional<Monotonic> paused_since_;  // while there are some

  uint64_t number_;                               // of the last question
  std::optional<Monotonic> asked_, asked_again_;  // it, and those who had not answered
  std::set<NodeIndex> unanswered_;
  std::optional<Monotonic> all_heard_;  // the last question that all have answered
};

}  // namespace aimaster
