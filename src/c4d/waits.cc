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
    return places_.ranks[seat.rank].at == seat.state || StartOf(observation_, seat) == Start::kStarted;
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
  CommonWaits(const Observation& observation, const Places& places, Waits& waits)
      : observation_(observation), places_(places), waits_(waits) {
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
                           .is_send = operation.function == Function::kSend});
        }
      }
    }
    std::ranges::sort(ends_, {}, Key);
  }

  void Add() {
    for (const End& end : ends_) AddOne(end);
  }

 private:
  struct End {
    uint32_t communicator, rank, peer, operation;
    bool is_send;
  };
  static std::tuple<uint32_t, uint32_t, uint32_t, bool, uint32_t> Key(const End& end) {
    return {end.communicator, end.rank, end.peer, end.is_send, end.operation};
  }

  // The operation of the other side; none: it has not issued any.
  uint32_t OtherSide(const End& end) const {
    const End other{
        .communicator = end.communicator, .rank = end.peer, .peer = end.rank, .operation = 0, .is_send = !end.is_send};
    const auto found = std::ranges::lower_bound(ends_, Key(other), {}, Key);
    const bool is_it = found != ends_.end() && found->communicator == other.communicator && found->rank == other.rank &&
                       found->peer == other.peer && found->is_send == other.is_send;
    return is_it ? found->operation : kNone;
  }

  bool IsWaiting(uint32_t rank) const { return !places_.IsStalled(rank) && observation_.ranks[rank].is_alive; }

  void AddOne(const End& end) {
    const bool holds_up = places_.is_head[end.operation] && IsWaiting(end.rank);
    const auto arrow_to = [&](uint32_t node) {
      if (holds_up) waits_.now.Add(end.rank, node);
      waits_.ever.Add(end.rank, node);
    };
    if (end.peer >= observation_.ranks.size()) return arrow_to(Waits::NodeOfUnseen(places_));  // whoever comes
    if (end.peer == end.rank) return;
    if (!observation_.ranks[end.peer].is_observed) {
      if (holds_up) waits_.unseen_peers.push_back(end.peer);
      return arrow_to(Waits::NodeOfUnseen(places_));
    }
    arrow_to(end.peer);
    if (const uint32_t other = OtherSide(end); other != kNone) {
      const bool is_there = places_.is_head[other] || observation_.operations[other].start == Start::kStarted;
      if (is_there && places_.ranks[end.peer].is_ordered) waits_.met[end.operation] = other;
    } else if (!places_.ranks[end.peer].is_outstanding && !places_.IsStalled(end.rank)) {
      // Of who is stuck the other side may long have completed its part.
      uint32_t& oldest = waits_.missed_by[end.peer];
      if (oldest == kNone || observation_.operations[end.operation].age > observation_.operations[oldest].age) {
        oldest = end.operation;
        waits_.missed_by_rank[end.peer] = end.rank;
        waits_.missed_in[end.peer] = end.communicator;
      }
    }
  }

  const Observation& observation_;
  const Places& places_;
  Waits& waits_;
  std::vector<End> ends_;
};

}  // namespace

Start StartOf(const Observation& observation, const Seat& seat) {
  if (seat.operation != kNone && observation.operations[seat.operation].start != Start::kUnknown) {
    return observation.operations[seat.operation].start;
  }
  if (seat.state == kNone || observation.states[seat.state].started == kUnknown) return Start::kUnknown;
  return observation.states[seat.state].started >= seat.position ? Start::kStarted : Start::kNotStarted;
}

Waits FindWaits(const Observation& observation, const Places& places) {
  Waits waits(Waits::NodeCount(places));
  const size_t arrows = 2 * places.seats.size() + 2 * places.rungs.size() + places.states.size();
  waits.now.Reserve(arrows);
  waits.ever.Reserve(arrows);
  waits.differences.assign(places.rungs.size(), Difference::kNothing);
  waits.met.assign(observation.operations.size(), kNone);
  waits.missed_by.assign(places.ranks.size(), kNone);
  waits.missed_by_rank.assign(places.ranks.size(), kNone);
  waits.missed_in.assign(places.ranks.size(), kNone);

  CollectiveWaits collectives(observation, places, waits);
  for (uint32_t rung = 0; rung < places.rungs.size(); ++rung) collectives.Add(rung);
  CommonWaits(observation, places, waits).Add();
  for (uint32_t rank = 0; rank < places.ranks.size(); ++rank) {
    for (const uint32_t state : places.StatesOf(rank)) {
      if (places.seat_of[state] == kNone || !places.seats[places.seat_of[state]].is_outstanding) continue;
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
