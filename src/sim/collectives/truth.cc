#include "sim/collectives/truth.h"

#include <algorithm>
#include <map>
#include <utility>

namespace aimaster::sim::collectives {
namespace {

class Looker {
 public:
  Looker(const Cluster& cluster, const Sight& sight)
      : cluster_(cluster),
        sight_(sight),
        is_hidden_(sight.is_hidden),
        truth_{.ranks = std::vector<RankTruth>(cluster.layout().ranks())} {}

  Truth Look() {
    const std::vector<Group>& groups = cluster_.layout().groups();
    for (uint32_t group = 0; group < groups.size(); ++group) {
      longest_.clear();
      longest_seen_.clear();
      longest_calls_.clear();
      for (const uint32_t rank : groups[group].members) {
        for (const Outstanding& operation : cluster_.MemberOf(rank, group).outstanding) {
          truth_.ranks[rank].has_outstanding = true;
          LookAtCall(rank, operation);
          if (operation.is_started) LookAtWaiting(rank, operation);
        }
      }
      for (const auto& [sequence, age] : longest_) MissInCollective(group, sequence, age, longest_seen_[sequence]);
      for (const auto& [sequence, age] : longest_calls_) MissCall(group, sequence, age);
    }
    return std::move(truth_);
  }

 private:
  void LookAtCall(uint32_t rank, const Outstanding& operation) {
    if (is_hidden_[rank]) return;
    const Duration age = cluster_.now() - operation.issued_at;
    truth_.longest_call = std::max(truth_.longest_call, age);
    if (!c4d::IsPointToPoint(operation.call.function)) {
      Duration& longest = longest_calls_[operation.sequence];
      longest = std::max(longest, age);
    } else if (!HasCalled(operation.call.peer, rank, operation)) {
      RankTruth& peer = truth_.ranks[operation.call.peer];
      peer.missed_call = std::max(peer.missed_call, age);
    }
  }

  void MissCall(uint32_t group, uint64_t sequence, Duration age) {
    for (const uint32_t rank : cluster_.layout().groups()[group].members) {
      RankTruth& truth = truth_.ranks[rank];
      if (cluster_.MemberOf(rank, group).issued < sequence) truth.missed_call = std::max(truth.missed_call, age);
    }
  }

  void LookAtWaiting(uint32_t rank, const Outstanding& operation) {
    const Meeting* meeting = cluster_.FindMeeting(rank, operation);
    if (meeting == nullptr || meeting->is_over || meeting->is_under_way) return;
    const bool all_came = meeting->arrived == cluster_.SizeOf(operation);
    const Duration age = cluster_.now() - (all_came ? meeting->last_arrival : operation.started_at);
    const bool is_own = meeting->stuck >= 0 && cluster_.faults()[static_cast<size_t>(meeting->stuck)].rank == rank;
    if (!all_came || !is_own) truth_.ranks[rank].waits = true;
    if (!is_hidden_[rank]) truth_.longest_wait = std::max(truth_.longest_wait, age);
    if (all_came || is_hidden_[rank]) return;
    const Duration seen = SeenAge(rank, operation, age);
    if (c4d::IsPointToPoint(operation.call.function)) {
      Miss(operation.call.peer, age, seen, HasCalled(operation.call.peer, rank, operation));
    } else {
      Duration& longest = longest_[operation.sequence];
      longest = std::max(longest, age);
      Duration& longest_seen = longest_seen_[operation.sequence];
      longest_seen = std::max(longest_seen, seen);
    }
  }

  // When a device has begun an operation is not told: only that it has, and when the rank last did anything in the
  // group. Of sends and receives that are not kept nothing is told at all.
  Duration SeenAge(uint32_t rank, const Outstanding& operation, Duration age) const {
    const Member& member = cluster_.MemberOf(rank, operation.call.group);
    if (c4d::IsPointToPoint(operation.call.function) && sight_.kept != 0) {
      const auto index = static_cast<size_t>(&operation - member.outstanding.data());
      if (index + sight_.kept < member.outstanding.size()) return Duration::zero();
    }
    const Duration idle = cluster_.now() - std::max(member.crossed, member.begun);
    return std::max(Duration(1), sight_.started ? std::min(age, idle) : age);
  }

  bool HasCalled(uint32_t peer, uint32_t rank, const Outstanding& operation) const {
    return std::ranges::any_of(cluster_.MemberOf(peer, operation.call.group).outstanding, [&](const Outstanding& o) {
      return o.call.peer == rank && c4d::IsPointToPoint(o.call.function) &&
             o.call.function != operation.call.function && o.channel_sequence == operation.channel_sequence;
    });
  }

  void MissInCollective(uint32_t group, uint64_t sequence, Duration age, Duration seen) {
    for (const uint32_t rank : cluster_.layout().groups()[group].members) {
      const Member& member = cluster_.MemberOf(rank, group);
      if (member.started < sequence) Miss(rank, age, seen, member.issued >= sequence);
    }
  }

  void Miss(uint32_t rank, Duration age, Duration seen, bool has_called) {
    RankTruth& truth = truth_.ranks[rank];
    truth.missed = std::max({truth.missed, age, Duration(1)});
    truth.missed_seen = std::max(truth.missed_seen, seen);
    truth.has_called |= has_called;
  }

  const Cluster& cluster_;
  const Sight& sight_;
  const std::vector<bool>& is_hidden_;
  Truth truth_;
  std::map<uint64_t, Duration> longest_;        // of those who wait in a collective of the group
  std::map<uint64_t, Duration> longest_seen_;   // the same, as it is seen
  std::map<uint64_t, Duration> longest_calls_;  // of those who have called it
};

}  // namespace

Truth LookAt(const Cluster& cluster, const Sight& sight) { return Looker(cluster, sight).Look(); }

}  // namespace aimaster::sim::collectives
