// SlowWatch: which rank makes the others wait, and which group is slow in communication itself, without synchronised
// clocks.
//
// A collective ends for all at about the same time. So how long each was in it says when it came: the one that was in
// it for the shortest time came last. With T over the ranks of one operation, and base what such an operation takes
// when nobody is late,
//
//   P = (Tmax − Tmin) / (Tmax − base)     near 1: somebody came late
//
// Else, where Tmin is far above what it mostly is: who came last waited for nobody, so it is the network. Asking for a
// P near 0 was rejected: over a slow link members of one operation end at moments that lie far apart.
//
// Who comes late may itself have waited in another group: in a training of tensor and data parallel groups a slow rank
// makes its tensor group late everywhere, and a slow stage its pipeline. So only that one is named that others wait for
// in most of its operations, or for longer in nearly all of one kind, and that does not itself wait for so much longer
// than others of the group in which it is late: those are at the same place of other replicas, and wait as one does
// there (for a tensor group, for the stage before). And none of a group of which half are late elsewhere. Comparing
// each rank with its own past was rejected: all ranks of a step slow down with the slowest.
//
// No verdict on what is slow for good reasons: sequences of different lengths make another rank late each time, who
// then waits the other times; a checkpoint or an evaluation is one late operation, or none for a while; of the first
// step there is no base yet. And it has to be so in several of the last windows.
//
// Not safe for threads. Memory is bounded, whatever the number of groups; what does not fit is counted.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "c4d/observation.h"
#include "c4d/verdict.h"

namespace aimaster::c4d {

struct FinishedOperation {
  uint32_t communicator = 0;  // in the observation's
  uint64_t sequence = 0;
  Rank rank{};
  uint32_t members = 0;  // of the communicator
  Function function = Function::kOtherCollective;
  uint64_t bytes = 0;
  Duration duration{};  // as this rank saw it
  uint32_t weight = 1;  // it stands for so many, of which the others were not told
};

// Bounds and thresholds.
struct SlowLimits {
  size_t kinds_max = 32'768;    // of operations: group, function and size
  size_t pending_max = 65'536;  // operations that not all members have told yet
  size_t ranks_max = 131'072;
  size_t verdicts_max = 16;
  uint32_t operations_min = 8;  // in a window, for it to count
  uint32_t windows = 5, windows_slow = 3;
  double late_share = 0.05;  // of a window, that others wait for one who is late
  double slow_factor = 2;    // over what an operation takes
  Duration difference_min = std::chrono::microseconds(50);
};

class SlowWatch {
 public:
  explicit SlowWatch(const SlowLimits& limits = {}) : limits_(limits) {}

  // In any order over ranks. Point-to-point operations only tell who waits.
  void Add(const FinishedOperation& operation);
  // The end of a window of this length: verdicts of level Info, the worst first.
  std::vector<Verdict> CloseWindow(Duration length, std::span<const Communicator> communicators);

  uint64_t dropped() const { return dropped_; }  // operations for which there was no place
  size_t kinds() const { return kinds_.size(); }
  size_t pending() const { return pending_.size(); }

 private:
  using KindKey = std::tuple<uint32_t, Function, uint8_t>;  // group, function, power of two of the bytes
  // In which of the last windows something was so; windows that do not count are left out.
  struct History {
    uint8_t bits = 0, count = 0;
    void Add(bool was, uint32_t windows);
    uint32_t slow() const;
  };
  struct Kind {
    Duration base{};           // what it takes at its best; zero: not known yet
    Duration usual{};          // what it takes mostly, in the best of the windows
    uint32_t windows = 0;      // that went into base
    uint32_t last_window = 0;  // in which there was one
    // Of this window.
    std::array<Duration, 4> least;    // the shortest of all, ascending
    std::array<Duration, 16> sample;  // of how long those were in it that came last
    uint32_t finished = 0, judged = 0, slow = 0;
    Duration slowest{};
    Rank late_rank{};                        // who mostly came last, and alone
    uint32_t late_lead = 0, late_times = 0;  // by how many more than others; how often since that is it
    History history;
  };
  struct Pending {
    KindKey kind;
    uint32_t members = 0, told = 0;
    uint32_t window = 0;
    uint32_t weight = 1;
    Rank last{};  // who was in it for the shortest time
    Duration least{}, second{}, most{};
  };
  struct Tally {
    Duration late{};                         // for so long it was the only one missing
    Duration waited{};                       // itself, in all groups
    uint32_t late_in = 0, late_in_lead = 0;  // the group in which it mostly was, and by how many more than in others
    uint32_t late_count = 0, finished = 0;
    bool is_regular = false;  // late in nearly all operations of one kind
    History history;
  };

  Kind* KindOf(const KindKey& key);
  // Of what is known from earlier windows, and from this one.
  static Duration Lower(const Kind& kind, Duration known, Duration now);
  void Finish(const Pending& pending);
  void CloseKinds();
  static bool IsOften(const Tally& tally);  // late in half of all operations
  bool IsLate(Rank rank, const Tally& tally, Duration length, std::span<const Communicator> communicators) const;
  // Not those of whose group half are late elsewhere: what they do together is more, and nobody of them is slow.
  void LeaveOutWholeGroups(std::vector<Rank>& late, std::span<const Communicator> communicators) const;
  // What the others of a group waited, in all of theirs, for anybody but this rank: the middle of them.
  Duration WaitOfOthers(Rank rank, std::span<const Rank> members) const;
  Verdict LateVerdict(Rank rank, const Tally& tally, Duration length) const;
  std::vector<Verdict> SlowGroups(std::span<const Communicator> communicators) const;

  SlowLimits limits_;
  std::map<KindKey, Kind> kinds_;
  std::map<std::pair<uint32_t, uint64_t>, Pending> pending_;  // by group and number
  std::vector<Tally> ranks_;
  uint32_t window_ = 1;
  uint64_t dropped_ = 0;
};

}  // namespace aimaster::c4d
