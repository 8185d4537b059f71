// SlownessWatch: what agents tell of finished collectives, put together for all ranks, and what follows from it at the
// end of each window (c4d/slow_watch.h). Of what is lost with a heartbeat, operations stay incomplete and count for
// nothing.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "aimaster/v1/agent.pb.h"
#include "c4d/slow_watch.h"
#include "engine/job_state.h"

namespace aimaster {

class SlownessWatch {
 public:
  // A window is half of C4D_CONN_BW_CHECK_PERIOD: slow is who was so in three of the last five.
  static constexpr uint32_t kWindowsAPeriod = 2;
  static constexpr size_t kCommunicatorsMax = 65'536;

  // From a node; of attempts that run there.
  void Take(Monotonic now, NodeIndex node, const v1::Communication& communication, const JobState& job);
  // Of a window that has ended; none: it goes on.
  std::optional<std::vector<c4d::Verdict>> CloseWindow(Monotonic now, const JobState& job);

  // Whether so many windows are over that who is slow would have been found.
  bool is_warm() const { return windows_ >= kWarmAfter; }
  const std::map<Rank, InstanceIndex>& places() const { return places_; }

 private:
  static constexpr uint32_t kWarmAfter = 6;

  void Add(const v1::Finished& finished);
  // Of one that is not known yet; none: there are too many.
  std::optional<uint32_t> CommunicatorOf(uint32_t source, const v1::FinishedGroup& group, Rank member);

  c4d::SlowWatch watch_;
  std::vector<c4d::Communicator> communicators_;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> numbers_;  // by source and id
  std::map<Rank, InstanceIndex> places_;
  std::optional<Monotonic> begun_;  // this window
  uint32_t windows_ = 0;
};

}  // namespace aimaster
