// Cluster: the ranks of a training at work. Each has a host, which goes through its program, and a device, which does
// what was queued; a collective is done some time after the last member's device has begun it.
//
// Hosts run ahead of their devices as with NCCL, up to a bounded queue, and groups have a queue each or all share one;
// or they stay inside each operation until it is done, as with Gloo and MPI. Nothing is random here: a layout, a
// workload and a plan of faults give one history. Threads of one process each were considered; with 4,096 ranks, and
// minutes of waiting, the history has to be computed rather than lived.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "core/time.h"
#include "sim/collectives/fault.h"
#include "sim/collectives/layout.h"
#include "sim/collectives/program.h"

namespace aimaster::sim::collectives {

enum class Mode : uint8_t { kStreams, kOneStream, kSynchronous };
std::string_view Name(Mode mode);

// An operation that a rank has called and that has not completed.
struct Outstanding {
  Call call;
  uint64_t sequence = 0;  // as the rank counts, from 1; those between two ranks apart
  uint64_t channel_sequence = 0;
  Duration issued_at{};
  Duration started_at{};
  bool is_started = false;
};

// A rank in a group.
struct Member {
  uint64_t issued = 0, started = 0, completed = 0;
  uint64_t point_to_point_issued = 0;
  Duration crossed{};                    // when it last called one, or one completed
  Duration begun{};                      // when its device last began one
  std::vector<Outstanding> outstanding;  // the oldest first
  std::map<uint64_t, uint64_t> channel_issued;
};

// Where the members of a group, or the two ends of a channel, meet.
struct Meeting {
  uint32_t arrived = 0;
  Duration first_arrival{}, last_arrival{};
  Call as_called;        // by the first
  bool differs = false;  // somebody called another one: it never ends
  int8_t stuck = -1;     // by which fault
  bool is_under_way = false, is_over = false;
};

enum class HostState : uint8_t { kRuns, kBusy, kQueueFull, kDrains, kInside, kStopped };

class Cluster {
 public:
  Cluster(const Layout& layout, const Workload& workload, Mode mode, uint32_t queue_depth, std::vector<Fault> faults,
          uint32_t slow_link = kNone);
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // Is told of each operation that completes, and how long the rank was in it.
  using Watcher = std::function<void(uint32_t rank, const Outstanding& operation, Duration duration)>;
  void Watch(Watcher watcher) { watcher_ = std::move(watcher); }
  // From now on the transfers of all groups of this rank take longer.
  void SlowDownLink(uint32_t rank) { slow_link_ = rank; }
  void RunUntil(Duration time);
  // Until nothing can happen any more, or until then.
  void RunUntilStill(Duration limit);

  const Layout& layout() const { return layout_; }
  Mode mode() const { return mode_; }
  Duration now() const { return now_; }
  uint64_t events() const { return event_number_; }
  bool is_still() const { return events_.empty(); }
  const std::vector<Fault>& faults() const { return faults_; }
  const Member& MemberOf(uint32_t rank, uint32_t group) const {
    return members_[group][layout_.PositionOf(rank, group)];
  }
  // At which one that `rank` has called meets the others; null before anybody has come.
  const Meeting* FindMeeting(uint32_t rank, const Outstanding& operation) const;
  uint32_t SizeOf(const Outstanding& operation) const;  // how many have to come
  HostState HostOf(uint32_t rank) const { return ranks_[rank].host; }
  uint64_t StepAt(uint32_t rank) const { return ranks_[rank].step; }
  Duration LastCrossing(uint32_t rank) const { return ranks_[rank].last_crossing; }

 private:
  struct Item {
    Instruction::Kind kind{};
    bool begun = false;
    int8_t fault = -1;
    uint8_t parts = 0;  // not yet complete
    uint8_t calls = 0;
    std::array<uint64_t, 2> sequences{};
    std::array<uint32_t, 2> groups{};
    std::array<bool, 2> between_two{};
    uint32_t wait_stream = 0;
    uint64_t wait_ticket = 0;
    Duration time{};
  };
  struct Stream {
    std::deque<Item> items;
    uint64_t queued = 0, completed = 0;
  };
  struct RankLife {
    std::vector<Instruction> program;
    size_t at = 0;
    uint64_t step = 0;
    HostState host = HostState::kRuns;
    bool is_halted = false;   // the device begins nothing any more
    bool is_stopped = false;  // the whole process
    uint8_t inside = 0;       // synchronous: operations until the host comes out
    uint32_t queued = 0;
    std::vector<Stream> streams;
    Duration last_crossing{}, last_call{};
  };
  struct Meetings {
    uint64_t first = 1;  // the sequence of the first one kept
    std::deque<Meeting> all;
  };
  struct Event {
    Duration at{};
    uint64_t number = 0;
    enum class Kind : uint8_t { kHost, kKernel, kTransfer, kChannel } kind{};
    uint32_t target = 0;  // a rank or a group
    uint64_t detail = 0;  // a stream, or a sequence
    uint64_t channel = 0;
    bool operator<(const Event& other) const { return at != other.at ? at > other.at : number > other.number; }
  };

  void Schedule(Duration delay, Event event);
  void Handle(const Event& event);
  void RunHost(uint32_t rank);
  void LoadStep(uint32_t rank);
  void ApplyToProgram(int8_t number, std::vector<Instruction>& program);
  void IssueCalls(uint32_t rank, const Instruction& instruction);
  Outstanding& Issue(uint32_t rank, const Call& call);
  Outstanding* FindOutstanding(uint32_t rank, uint32_t group, uint64_t sequence, bool between_two);
  Member& Of(uint32_t rank, uint32_t group) { return members_[group][layout_.PositionOf(rank, group)]; }
  void Queue(uint32_t rank, uint32_t stream, Item item);
  void Pump(uint32_t rank);
  void BeginItem(uint32_t rank, uint32_t stream, Item& item);
  void FinishItem(uint32_t rank, uint32_t stream);
  void Arrive(uint32_t rank, Outstanding& operation, int8_t fault);
  void Complete(uint32_t rank, uint32_t group, uint64_t sequence, bool between_two);
  uint32_t End(Meetings& meetings, uint64_t sequence);  // whose device is stuck in it, or none
  void CompleteCollective(uint32_t group, uint64_t sequence);
  void CompleteTransfer(uint32_t group, uint64_t channel, uint64_t sequence);
  void Fire(int8_t number, uint32_t group, uint64_t sequence);
  void StopProcess(uint32_t rank, int8_t number);
  uint32_t StreamOf(uint32_t group) const;
  static uint64_t ChannelOf(uint32_t rank, const Call& call);
  Meeting& MeetingOf(uint32_t rank, const Outstanding& operation);
  void GoOn(uint32_t rank);

  const Layout& layout_;
  const Workload& workload_;
  const Mode mode_;
  const uint32_t queue_depth_;
  uint32_t slow_link_;
  std::vector<Fault> faults_;
  Watcher watcher_;
  Duration now_{};
  uint64_t event_number_ = 0;
  std::priority_queue<Event> events_;
  std::vector<RankLife> ranks_;
  std::vector<std::vector<Member>> members_;  // by group, then position
  std::vector<Meetings> meetings_;            // by group
  std::vector<std::map<uint64_t, Meetings>> channels_;
};

}  // namespace aimaster::sim::collectives
