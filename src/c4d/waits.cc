#include "c4d/waits.h"

#include <algorithm>
#include <tuple>

namespace aimaster::c4d {
namespace {

// The collectives: from each rung at which somebody stands to those who are missing there.
class CollectiveWaits {
 public:
  CollectiveWaits(const Observation& observation, const Places& places, Waits& waits)
      : observation_(observation), places_(places), waits_(waits) {}

  void Add(uint32_t index) {
    const Rung& rung = places_.rungs[index];
    const GroupPlaces& group = places_.groups[rung.communicator];
    for (const Seat& seat : places_.SeatsOf(rung)) AddArrow(Waits::NodeOfRung(places_, index), seat.rank);
    if (index > group.first_rung) {
      AddArrow(Waits::NodeOfRung(places_, index), Waits::NodeOfRung(places_, index - 1));
    }
    if (!rung.is_waited) return;
    Difference& difference = waits_.differences[index] = FindDifference(observation_, places_, rung);
    if (difference == Difference::kOperation) return;

    const uint32_t from = Waits::NodeOfOperation(places_, index);
    const std::optional<uint32_t> root = MissingRoot(rung);
    if (root || HasAllItNeeds(rung)) {
      difference = Difference::kNothing;
      if (root) AddArrow(from, *root);
      return;
    }
    bool is_missed = group.unseen > 0 || index > group.first_rung;
    if (group.unseen > 0) AddArrow(from, Waits::NodeOfUnseen(places_));
    if (index > group.first_rung) AddArrow(from, Waits::NodeOfRung(places_, index - 1));
    for (const Seat& seat : places_.SeatsOf(rung)) {
      if (IsAt(seat)) continue;
      AddArrow(from, seat.rank);
      is_missed = true;
    }
    if (is_missed) difference = Difference::kNothing;
  }

 private:
  void AddArrow(uint32_t from, uint32_t to) {
    waits_.now.Add(from, to);
    waits_.ever.Add(from, to);
  }

  bool IsAt(const Seat& seat) const {
    if (!seat.is_outstanding || places_.IsStalled(seat.rank)) return false;
    return seat.start == Start::kStarted || places_.ranks[seat.rank].at == seat.state;
  }

  // Somebody has completed what nobody can complete alone: who still stands at it waits for nobody.
  bool HasAllItNeeds(const Rung& rung) const {
    const GroupPlaces& group = places_.groups[rung.communicator];
    if (!rung.is_completed || group.carries_point_to_point) return false;
    if (rung.operation == kNone) return group.issued_min >= rung.position;
    return NeedsAll(observation_.operations[rung.operation].function);
  }

  // The node of the root from which all others receive, while it is not there: nobody else matters before it is.
  std::optional<uint32_t> MissingRoot(const Rung& rung) const {
    if (rung.operation == kNone) return std::nullopt;
    const Operation& operation = observation_.operations[rung.operation];
    if (operation.function != Function::kBroadcast && operation.function != Function::kScatter) return std::nullopt;
    if (Value(operation.peer) >= observation_.ranks.size()) return std::nullopt;
    const Seat* root = SeatIn(observation_, places_, rung.communicator, operation.peer);
    if (root == nullptr) return std::nullopt;
    const bool is_there = root->position > rung.position || (root->position == rung.position && IsAt(*root));
    return is_there ? std::nullopt : std::optional(root->rank);
  }

  const Observation& observation_;
  const Places& places_;
  Waits& waits_;
};

// The operations from rank to rank, each with the one of the other side that belongs to it. They have no numbers in
// common; but the first outstanding send to somebody belongs to their first outstanding receive from it.
class CommonWaits {
 public:
  CommonWaits(const Observation& observation, const Places& places) : observation_(observation), places_(places) {
    for (uint32_t rank = 0; rank < places.ranks.size(); ++rank) {
      for (const uint32_t s : places.StatesOf(rank)) {
        const MemberState& state = observation.states[s];
        for (uint32_t i = state.first_operation; i < state.first_operation + state.operation_count; ++i) {
          const Operation& operation = observation.operations[i];
          if (!IsPointToPoint(operation.function)) continue;
          ends_.push_back({.communicator = state.communicator,
                           .rank = rank,
                           .peer = Value(operation.peer),
                           .operation = i,
                           .is_send = operation.function == Function::kSend,
                           .state = s});
        }
      }
    }
    std::ranges::sort(ends_, {}, Key);
    FindTransfers();
  }

  uint32_t transfers() const { return static_cast<uint32_t>(transfers_.size()); }

  void AddTo(Waits& waits) {
    for (const End& end : ends_) AddOne(end, waits);
    waits.transfers = std::move(transfers_);
  }

 private:
  struct End {
    uint32_t communicator, rank, peer, operation;
    bool is_send;
    uint32_t state;
  };
  static std::tuple<uint32_t, uint32_t, uint32_t, bool, uint32_t> Key(const End& end) {
    return {end.communicator, end.rank, end.peer, end.is_send, end.operation};
  }

  // The operation of the other side; null: it has not issued any.
  const End* OtherSide(const End& end) const {
    const End other{.communicator = end.communicator,
                    .rank = end.peer,
                    .peer = end.rank,
                    .operation = 0,
                    .is_send = !end.is_send,
                    .state = kNone};
    const auto found = std::ranges::lower_bound(ends_, Key(other), {}, Key);
    const bool is_it = found != ends_.end() && found->communicator == other.communicator && found->rank == other.rank &&
                       found->peer == other.peer && found->is_send == other.is_send;
    return is_it ? &*found : nullptr;
  }

  bool IsWaiting(uint32_t rank) const { return !places_.IsStalled(rank) && observation_.ranks[rank].is_alive; }
  bool IsBegun(const End& end) const { return observation_.operations[end.operation].start == Start::kStarted; }
  Duration WaitOf(const End& end) const {
    return c4d::WaitOf(observation_.states[end.state], observation_.operations[end.operation]);
  }

  // Whether the other side, of which nothing is outstanding, may have done its part and come to the end of its program,
  // and this one is lost: it has done something in the group since, and nothing that others have called is left to it.
  bool MayBeDone(const End& end) const {
    if (places_.ranks[end.peer].is_outstanding) return false;
    for (const uint32_t s : places_.StatesOf(end.peer)) {
      const MemberState& state = observation_.states[s];
      if (state.issued < places_.groups[state.communicator].issued_max) return false;  // its program goes on
    }
    const uint32_t group = end.communicator;
    const std::span<const MemberState> states =
        std::span(observation_.states).subspan(places_.groups[group].first_state, places_.groups[group].state_count);
    const auto peer = std::ranges::lower_bound(states, Rank{end.peer}, {}, &MemberState::rank);
    const Duration wait = WaitOf(end);
    if (peer == states.end() || peer->rank != Rank{end.peer} || peer->idle == kNoAge || wait == kNoAge) return false;
    return peer->idle < wait;
  }

  // The other side of an operation, where both have begun.
  const End* Met(const End& end) const {
    if (!IsBegun(end) || !IsWaiting(end.rank)) return nullptr;
    const End* other = OtherSide(end);
    return other != nullptr && other->rank != end.rank && IsBegun(*other) && IsWaiting(other->rank) ? other : nullptr;
  }

  void FindTransfers() {
    std::vector<uint32_t> leader;  // of each rank, another one with which it is joined, or itself
    const auto leader_of = [&](uint32_t rank) {
      while (leader[rank] != rank) rank = leader[rank] = leader[leader[rank]];
      return rank;
    };
    const auto any_met = [&](const End& end) { return Met(end) != nullptr; };
    if (std::ranges::none_of(ends_, any_met)) return;
    transfer_of_.assign(places_.ranks.size(), kNone);
    for (uint32_t rank = 0; rank < places_.ranks.size(); ++rank) leader.push_back(rank);
    for (const End& end : ends_) {
      if (const End* other = Met(end)) leader[leader_of(end.rank)] = leader_of(other->rank);
    }
    std::vector<uint32_t> transfer_of_leader(places_.ranks.size(), kNone);
    for (const End& end : ends_) {
      if (Met(end) == nullptr) continue;
      uint32_t& index = transfer_of_leader[leader_of(end.rank)];
      if (index == kNone) {
        index = transfers();
        transfers_.push_back({.ranks = {}, .operation = end.operation, .communicator = end.communicator});
      }
      Transfer& transfer = transfers_[index];
      transfer.wait = Least(transfer.wait, WaitOf(end));
      if (transfer_of_[end.rank] != kNone) continue;
      transfer_of_[end.rank] = index;
      transfer.ranks.push_back(end.rank);
    }
    for (Transfer& transfer : transfers_) std::ranges::sort(transfer.ranks);
  }

  void AddOne(const End& end, Waits& waits) const {
    const Operation& operation = observation_.operations[end.operation];
    if (operation.start == Start::kNotStarted) return;  // its device is elsewhere
    const bool holds_up = places_.is_head[end.operation] && IsWaiting(end.rank);
    const auto arrow_to = [&](uint32_t node) {
      if (holds_up) waits.now.Add(end.rank, node);
      waits.ever.Add(end.rank, node);
    };
    if (end.peer >= observation_.ranks.size()) return arrow_to(Waits::NodeOfUnseen(places_));  // whoever comes
    if (end.peer == end.rank) return;
    if (!observation_.ranks[end.peer].is_observed) {
      if (holds_up) waits.unseen_peers.push_back(end.peer);
      return arrow_to(Waits::NodeOfUnseen(places_));
    }
    if (Met(end) != nullptr) return arrow_to(Waits::NodeOfTransfer(places_, transfer_of_[end.rank]));
    arrow_to(end.peer);
    const End* other = OtherSide(end);
    // It may be at the other end all the same.
    if (other == nullptr && places_.ranks[end.peer].has_lost) arrow_to(Waits::NodeOfUnseen(places_));
    if (other != nullptr && !places_.ranks[end.peer].is_before) {
      const bool is_there = places_.is_head[other->operation] || IsBegun(*other);
      if (is_there && places_.ranks[end.peer].is_ordered) waits.met[end.operation] = other->operation;
    } else if (places_.IsIdle(end.peer) && !places_.IsStalled(end.rank)) {
      // Of who is stuck the other side may long have completed its part.
      MissedBy& by = waits.missed_by[end.peer];
      const bool is_first = by.operation == kNone;
      const bool is_sure = by.is_sure || !MayBeDone(end) || (!is_first && by.rank != end.rank);
      if (is_first || WaitOf(end) > by.wait) {
        by = {.operation = end.operation, .rank = end.rank, .communicator = end.communicator, .wait = WaitOf(end)};
      }
      by.is_sure = is_sure;
    }
  }

  const Observation& observation_;
  const Places& places_;
  std::vector<End> ends_;
  std::vector<Transfer> transfers_;
  std::vector<uint32_t> transfer_of_;  // of each rank; empty: there are none
};

}  // namespace

Waits FindWaits(const Observation& observation, const Places& places) {
  CommonWaits common(observation, places);
  Waits waits(Waits::NodeOfTransfer(places, common.transfers()));
  const size_t arrows = 2 * places.seats.size() + 2 * places.rungs.size() + places.states.size();
  waits.now.Reserve(arrows);
  waits.ever.Reserve(arrows);
  waits.differences.assign(places.rungs.size(), Difference::kNothing);
  waits.met.assign(observation.operations.size(), kNone);
  waits.missed_by.resize(places.ranks.size());

  CollectiveWaits collectives(observation, places, waits);
  for (uint32_t rung = 0; rung < places.rungs.size(); ++rung) collectives.Add(rung);
  common.AddTo(waits);
  for (uint32_t rank = 0; rank < places.ranks.size(); ++rank) {
    for (const uint32_t state : places.StatesOf(rank)) {
      if (places.seat_of[state] == kNone) continue;
      const Seat& seat = places.seats[places.seat_of[state]];
      if (!seat.is_outstanding || seat.start == Start::kNotStarted) continue;
      waits.ever.Add(rank, Waits::NodeOfOperation(places, places.rung_of[state]));
    }
    if (places.IsStalled(rank) || !observation.ranks[rank].is_alive) continue;  // it waits for nobody any more
    for (const Head& head : places.HeadsOf(rank)) {
      if (head.state == kNone) continue;
      waits.now.Add(rank, Waits::NodeOfOperation(places, places.rung_of[head.state]));
    }
    if (places.ranks[rank].has_unknown) {
      waits.now.Add(rank, Waits::NodeOfUnseen(places));
      waits.ever.Add(rank, Waits::NodeOfUnseen(places));
    }
  }
  waits.now.Finish();
  return waits;
}

}  // namespace aimaster::c4d
