#include "c4d/places.h"

#include <algorithm>
#include <tuple>

namespace aimaster::c4d {
namespace {

std::span<const Operation> OperationsOf(const Observation& observation, const MemberState& state) {
  return std::span(observation.operations).subspan(state.first_operation, state.operation_count);
}

bool IsUsable(const Observation& observation, const MemberState& state) {
  return Value(state.rank) < observation.ranks.size() && observation.ranks[Value(state.rank)].is_observed &&
         state.communicator < observation.communicators.size() &&
         state.first_operation <= observation.operations.size() &&
         state.operation_count <= observation.operations.size() - state.first_operation;
}

bool HasLost(const MemberState& state) {
  return state.issued > state.completed && state.operation_count < state.issued - state.completed;
}

Start StartOf(const Observation& observation, const MemberState& state, const Seat& seat) {
  if (seat.operation != kNone && observation.operations[seat.operation].start != Start::kUnknown) {
    return observation.operations[seat.operation].start;
  }
  if (state.started == kUnknown) return Start::kUnknown;
  return state.started >= seat.position ? Start::kStarted : Start::kNotStarted;
}

Seat SeatOf(const Observation& observation, uint32_t index) {
  const MemberState& state = observation.states[index];
  Seat seat{.rank = Value(state.rank), .state = index};
  const std::span<const Operation> operations = OperationsOf(observation, state);
  const auto first = std::ranges::find_if_not(operations, IsPointToPoint, &Operation::function);
  const bool is_kept = first != operations.end();
  // Where operations from rank to rank are mixed in, what was lost may be one of those.
  const bool is_counted = state.issued > state.completed && !state.carries_point_to_point;
  seat.is_outstanding = is_kept || is_counted;
  if (!seat.is_outstanding) {
    seat.position = state.issued + 1;
    return seat;
  }
  seat.position = is_kept ? first->sequence : state.completed + 1;
  if (is_counted && is_kept) seat.position = std::min(seat.position, state.completed + 1);
  if (is_kept) seat.age = first->age;
  if (is_kept && first->sequence == seat.position) {
    seat.operation = static_cast<uint32_t>(&*first - observation.operations.data());
  } else {
    seat.age = std::max(seat.age, state.idle);
  }
  seat.start = StartOf(observation, state, seat);
  seat.wait = seat.start == Start::kStarted ? Least(seat.age, state.idle) : seat.age;
  return seat;
}

// Everybody of a group that is observed sits somewhere.
void SeatGroup(const Observation& observation, uint32_t communicator, Places& places) {
  GroupPlaces& group = places.groups[communicator];
  const auto begin = static_cast<uint32_t>(places.seats.size());
  uint64_t completed = 0;
  bool is_waited = false;
  for (uint32_t s = group.first_state; s < group.first_state + group.state_count; ++s) {
    const MemberState& state = observation.states[s];
    if (!IsUsable(observation, state)) continue;
    const Seat& seat = places.seats.emplace_back(SeatOf(observation, s));
    is_waited = is_waited || seat.is_outstanding;
    completed = std::max(completed, state.completed);
    group.issued_min = std::min(group.issued_min, state.issued);
    group.issued_max = std::max(group.issued_max, state.issued);
    group.carries_point_to_point = group.carries_point_to_point || state.carries_point_to_point;
  }
  const auto seen = static_cast<uint32_t>(places.seats.size());
  uint32_t at = begin;
  for (const Rank member : observation.communicators[communicator].members) {
    while (at < seen && places.seats[at].rank < Value(member)) ++at;
    if (at < seen && places.seats[at].rank == Value(member)) continue;
    const bool is_observed = Value(member) < observation.ranks.size() && observation.ranks[Value(member)].is_observed;
    // In a group that has been through something together, one without a state has lost it; else it has yet to come.
    if (!is_observed || completed > 0 || group.carries_point_to_point) {
      ++group.unseen;
    } else if (is_waited) {
      places.seats.push_back({.position = 1, .rank = Value(member)});
      group.issued_min = 0;
    }
  }
  const std::span<Seat> seats = std::span(places.seats).subspan(begin);
  if (!is_waited) {  // nobody stands at anything: where they are does not matter
    places.seats.resize(begin);
    return;
  }
  std::ranges::sort(seats, {}, [](const Seat& seat) { return std::tuple(seat.position, seat.rank); });

  group.first_rung = static_cast<uint32_t>(places.rungs.size());
  for (uint32_t i = begin; i < places.seats.size(); ++i) {
    const Seat& seat = places.seats[i];
    if (i == begin || seat.position != places.rungs.back().position) {
      places.rungs.push_back({.position = seat.position, .communicator = communicator, .begin = i, .end = i});
    }
    Rung& rung = places.rungs.back();
    rung.end = i + 1;
    rung.is_waited = rung.is_waited || seat.is_outstanding;
    if (rung.operation == kNone) rung.operation = seat.operation;
    if (seat.state == kNone) continue;
    places.seat_of[seat.state] = i;
    places.rung_of[seat.state] = static_cast<uint32_t>(places.rungs.size() - 1);
  }
  group.rung_count = static_cast<uint32_t>(places.rungs.size()) - group.first_rung;
  Duration still = kNoAge;  // the longest of those above
  for (uint32_t l = group.first_rung + group.rung_count; l-- > group.first_rung;) {
    Rung& rung = places.rungs[l];
    rung.is_completed = l + 1 < group.first_rung + group.rung_count;
    rung.completed = still;
    for (const Seat& seat : places.SeatsOf(rung)) {
      if (seat.state != kNone) still = std::max(still, observation.states[seat.state].idle);
    }
  }
}

void FindTrailing(const Observation& observation, Places& places) {
  for (const Rung& rung : places.rungs) {
    const GroupPlaces& group = places.groups[rung.communicator];
    if (!rung.is_waited || !rung.is_completed || group.carries_point_to_point) continue;
    const bool needs_all = rung.operation == kNone ? group.issued_min >= rung.position
                                                   : NeedsAll(observation.operations[rung.operation].function);
    const size_t behind = rung.end - places.rungs[group.first_rung].begin;
    if (!needs_all || behind * 2 > observation.communicators[rung.communicator].members.size()) continue;
    for (uint32_t i = rung.begin; i < rung.end; ++i) {
      Seat& seat = places.seats[i];
      // What its device has not begun although others have completed it was done without a kernel that is heard of.
      seat.trails = seat.is_outstanding && seat.start != Start::kNotStarted;
      if (seat.trails) ++places.ranks[seat.rank].trails;
    }
  }
}

// What holds a rank up: of its outstanding operations those that its device has begun; where that is not told, the
// oldest.
class HeadFinder {
 public:
  HeadFinder(const Observation& observation, Places& places)
      : observation_(observation),
        places_(places),
        has_lost_(std::ranges::any_of(observation.states, HasLost)),
        keeps_any_(!observation.operations.empty()) {}

  void Find(uint32_t rank) {
    RankPlaces& place = places_.ranks[rank];
    place.first_head = static_cast<uint32_t>(places_.heads.size());
    Collect(rank);
    if (is_told_) {
      FindBegun(place);
    } else {
      FindOldest(place);
    }
    place.head_count = static_cast<uint32_t>(places_.heads.size()) - place.first_head;
  }

 private:
  void FindBegun(RankPlaces& place) {
    for (const Transfer& transfer : common_) AddHead({.operation = transfer.operation});
    for (const uint32_t state : collectives_) AddHead({.state = state});
    for (const Transfer& transfer : common_) place.age = std::max(place.age, transfer.wait);
    for (const uint32_t state : collectives_) place.age = std::max(place.age, SeatOf(state).wait);
    place.is_before = place.is_outstanding && common_.empty() && collectives_.empty() && !place.has_unknown;
  }

  void FindOldest(RankPlaces& place) {
    FindOldestCollectives(place);
    bool is_after_receive = false;  // the oldest collective was issued after a receive that has not completed
    for (const Transfer& transfer : common_) {
      const Operation& operation = observation_.operations[transfer.operation];
      place.age = std::max(place.age, operation.age);
      const bool is_unclear = operation.age == kNoAge || operation.age == oldest_ || !is_exact_;
      if (!oldest_collectives_.empty() && operation.age != kNoAge && operation.age < oldest_) continue;
      AddHead({.operation = transfer.operation});
      if (oldest_collectives_.empty()) continue;
      if (is_unclear) place.is_ordered = false;
      if (!is_unclear && operation.function == Function::kReceive) is_after_receive = true;
    }
    const bool has_common_head = places_.heads.size() > place.first_head;
    if (!is_after_receive) {
      for (const uint32_t state : oldest_collectives_) AddHead({.state = state});
      if (oldest_collectives_.size() > 1) place.is_ordered = false;
      if (oldest_collectives_.size() == 1 && !has_common_head && !place.has_unknown) place.at = oldest_collectives_[0];
    }
  }

  const Seat& SeatOf(uint32_t state) const { return places_.seats[places_.seat_of[state]]; }

  void Collect(uint32_t rank) {
    RankPlaces& place = places_.ranks[rank];
    collectives_.clear();
    common_.clear();
    is_told_ = true;
    bool has_common = false;
    const auto hear = [&](Duration age) {
      if (age != kNoAge) place.quiet = place.quiet == kNoAge ? age : std::min(place.quiet, age);
    };
    hear(observation_.ranks[rank].outside);
    for (const uint32_t index : places_.StatesOf(rank)) {
      const MemberState& state = observation_.states[index];
      hear(state.idle);
      has_common = has_common || places_.groups[state.communicator].carries_point_to_point;
      if (HasLost(state)) place.is_outstanding = true;
      if (places_.seat_of[index] != kNone && SeatOf(index).is_outstanding) {
        ++place.outstanding;
        place.is_outstanding = true;
        is_told_ = is_told_ && SeatOf(index).start != Start::kUnknown;
        if (SeatOf(index).start != Start::kNotStarted) collectives_.push_back(index);
      }
      for (const Operation& operation : OperationsOf(observation_, state)) {
        if (!IsPointToPoint(operation.function)) continue;
        place.is_outstanding = true;
        is_told_ = is_told_ && operation.start != Start::kUnknown;
        if (operation.start == Start::kNotStarted) continue;
        common_.push_back({.operation = static_cast<uint32_t>(&operation - observation_.operations.data()),
                           .wait = WaitOf(state, operation)});
      }
    }
    // Who looks at devices himself says which ranks' operations he has lost; a ring is written over unseen.
    const bool may_lack = has_lost_ && (!is_told_ || !keeps_any_);
    place.has_lost = has_common && (may_lack || observation_.ranks[rank].has_lost_operations);
    // What its device is known to be in holds it up, whatever else does.
    place.has_unknown = place.has_lost && (!is_told_ || (common_.empty() && collectives_.empty()));
    if (place.has_unknown) place.is_ordered = false;
  }

  void FindOldestCollectives(RankPlaces& place) {
    oldest_ = kNoAge;
    oldest_collectives_.clear();
    const auto is_exact = [](const Seat& seat) { return seat.operation != kNone && seat.age != kNoAge; };
    Duration exact = kNoAge, at_least = kNoAge;
    for (const uint32_t state : collectives_) {
      Duration& oldest = is_exact(SeatOf(state)) ? exact : at_least;
      oldest = std::max(oldest, SeatOf(state).age);
    }
    is_exact_ = true;
    for (const uint32_t state : collectives_) {
      const Seat& seat = SeatOf(state);
      if (is_exact(seat) && (seat.age < exact || (at_least != kNoAge && at_least >= exact))) continue;
      is_exact_ = is_exact_ && is_exact(seat);
      oldest_collectives_.push_back(state);
    }
    oldest_ = std::max(exact, at_least);
    place.age = std::max(place.age, oldest_);
  }

  void AddHead(Head head) {
    places_.heads.push_back(head);
    if (head.operation != kNone) places_.is_head[head.operation] = true;
  }

  const Observation& observation_;
  Places& places_;
  // Somebody has issued what its source has not kept. Of what goes from rank to rank nobody counts how much that is; so
  // then everybody who does that may stand at something that was lost.
  bool has_lost_;
  bool keeps_any_;
  struct Transfer {
    uint32_t operation;
    Duration wait;
  };
  // Of what is outstanding, all of which it is not told that the device has not begun it:
  std::vector<uint32_t> collectives_;         // the states of the rank with one
  std::vector<Transfer> common_;              // operations from rank to rank
  std::vector<uint32_t> oldest_collectives_;  // of collectives_, those that may be the oldest
  bool is_told_ = true;                       // of all that is outstanding, whether the device has begun it
  Duration oldest_ = kNoAge;
  bool is_exact_ = true;
};

}  // namespace

Duration WaitOf(const MemberState& state, const Operation& operation) {
  return operation.start == Start::kStarted ? Least(operation.age, state.idle) : operation.age;
}

Duration Least(Duration a, Duration b) { return a == kNoAge ? b : b == kNoAge ? a : std::min(a, b); }

bool NeedsAll(Function function) {
  switch (function) {
    case Function::kAllReduce:
    case Function::kAllGather:
    case Function::kReduceScatter:
    case Function::kAllToAll:
    case Function::kBarrier:
      return true;
    case Function::kBroadcast:  // the root may be done when it has sent, others when they have given
    case Function::kReduce:
    case Function::kGather:
    case Function::kScatter:
    case Function::kScan:
    case Function::kSend:
    case Function::kReceive:
    case Function::kOtherCollective:
      return false;
  }
  return false;
}

const Seat* SeatIn(const Observation& observation, const Places& places, uint32_t communicator, Rank rank) {
  const GroupPlaces& group = places.groups[communicator];
  const auto states = std::span(observation.states).subspan(group.first_state, group.state_count);
  const auto found = std::ranges::lower_bound(states, rank, {}, &MemberState::rank);
  if (found == states.end() || found->rank != rank) return nullptr;
  const uint32_t seat = places.seat_of[group.first_state + static_cast<uint32_t>(found - states.begin())];
  return seat == kNone ? nullptr : &places.seats[seat];
}

Places FindPlaces(const Observation& observation) {
  Places places;
  const auto ranks = static_cast<uint32_t>(observation.ranks.size());
  const auto states = static_cast<uint32_t>(observation.states.size());
  places.groups.resize(observation.communicators.size());
  places.ranks.resize(ranks);
  places.seat_of.assign(states, kNone);
  places.rung_of.assign(states, kNone);
  places.is_head.assign(observation.operations.size(), false);
  places.seats.reserve(states);

  places.first_state.assign(ranks + 1, 0);
  for (uint32_t s = 0; s < states; ++s) {
    const MemberState& state = observation.states[s];
    if (state.communicator < places.groups.size()) {
      GroupPlaces& group = places.groups[state.communicator];
      if (group.state_count++ == 0) group.first_state = s;
    }
    if (IsUsable(observation, state)) ++places.first_state[Value(state.rank) + 1];
  }
  for (uint32_t rank = 0; rank < ranks; ++rank) places.first_state[rank + 1] += places.first_state[rank];
  places.states.resize(places.first_state[ranks]);
  std::vector<uint32_t> next(places.first_state.begin(), places.first_state.end() - 1);
  for (uint32_t s = 0; s < states; ++s) {
    const MemberState& state = observation.states[s];
    if (IsUsable(observation, state)) places.states[next[Value(state.rank)]++] = s;
  }

  for (uint32_t c = 0; c < places.groups.size(); ++c) SeatGroup(observation, c, places);
  FindTrailing(observation, places);
  HeadFinder finder(observation, places);
  for (uint32_t rank = 0; rank < ranks; ++rank) finder.Find(rank);
  return places;
}

}  // namespace aimaster::c4d
