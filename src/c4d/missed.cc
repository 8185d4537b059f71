#include "c4d/missed.h"

#include <algorithm>

namespace aimaster::c4d {
namespace {

class MissedFinder {
 public:
  MissedFinder(const Observation& observation, const Places& places)
      : observation_(observation), places_(places), of_(places.ranks.size(), kNone) {}

  void FindIn(uint32_t communicator) {
    const GroupPlaces& group = places_.groups[communicator];
    // The rungs at which somebody is outside; for each the oldest operation that misses who is there.
    absent_.clear();
    for (uint32_t l = group.first_rung; l < group.first_rung + group.rung_count; ++l) {
      const bool is_absent =
          std::ranges::any_of(places_.SeatsOf(places_.rungs[l]), [&](const Seat& seat) { return IsOutside(seat); });
      if (is_absent) absent_.push_back({.rung = l, .missed = {}});
    }
    if (absent_.empty()) return;
    for (uint32_t l = group.first_rung; l < group.first_rung + group.rung_count; ++l) {
      for (const Seat& seat : places_.SeatsOf(places_.rungs[l])) {
        if (seat.is_outstanding) FindMissedBy(communicator, seat);
      }
    }
    Missed oldest{};  // of all that misses who is above; who is below is missed by that too
    for (size_t i = absent_.size(); i-- > 0;) {
      Take(oldest, absent_[i].missed);
      if (oldest.communicator == kNone) continue;
      const Rung& rung = places_.rungs[absent_[i].rung];
      for (const Seat& seat : places_.SeatsOf(rung)) {
        if (IsOutside(seat)) AddTo(seat.rank, oldest, rung.position, seat.is_outstanding);
      }
    }
  }

  void AddTo(uint32_t rank, Missed missed, uint64_t sequence, bool has_issued) {
    missed.rank = rank;
    missed.sequence = sequence;
    missed.has_issued = has_issued;
    if (of_[rank] == kNone) {
      of_[rank] = static_cast<uint32_t>(found_.size());
      found_.push_back(missed);
    } else {
      Take(found_[of_[rank]], missed);
    }
  }

  std::vector<Missed> Found() && {
    std::ranges::sort(found_, {}, &Missed::rank);
    return std::move(found_);
  }

 private:
  struct Absent {
    uint32_t rung;
    Missed missed;
  };

  bool IsOutside(const Seat& seat) const { return places_.IsIdle(seat.rank) && observation_.ranks[seat.rank].is_alive; }

  static void Take(Missed& oldest, const Missed& candidate) {
    if (candidate.communicator == kNone) return;
    if (oldest.communicator == kNone || candidate.age > oldest.age) oldest = candidate;
  }

  void FindMissedBy(uint32_t communicator, const Seat& seat) {
    if (seat.start == Start::kNotStarted) return;
    const MemberState& state = observation_.states[seat.state];
    if (seat.operation == kNone) Miss(seat.position, {.communicator = communicator, .by = seat.rank, .age = seat.wait});
    uint64_t last = state.started == kUnknown ? state.issued : std::min(state.issued, state.started);
    for (uint32_t i = state.first_operation; i < state.first_operation + state.operation_count; ++i) {
      const Operation& operation = observation_.operations[i];
      if (IsPointToPoint(operation.function)) continue;
      if (operation.start == Start::kNotStarted) {
        last = std::min(last, operation.sequence - 1);
        break;
      }
      const Missed missed{
          .communicator = communicator, .operation = i, .by = seat.rank, .age = WaitOf(state, operation)};
      if (const Seat* root = MissingRoot(communicator, operation)) {
        if (IsOutside(*root)) AddTo(root->rank, missed, root->position, root->is_outstanding);
      } else {
        Miss(operation.sequence, missed);
      }
    }
    // What a source has not kept misses them as well.
    if (last > seat.position && !state.carries_point_to_point) {
      Miss(last, {.communicator = communicator, .by = seat.rank, .age = state.idle});
    }
  }

  void Miss(uint64_t sequence, const Missed& missed) {
    const auto above = std::ranges::upper_bound(
        absent_, sequence, {}, [&](const Absent& absent) { return places_.rungs[absent.rung].position; });
    if (above != absent_.begin()) Take((above - 1)->missed, missed);
  }

  // All others receive from it, so that nobody else is missed while it has not come.
  const Seat* MissingRoot(uint32_t communicator, const Operation& operation) const {
    if (operation.function != Function::kBroadcast && operation.function != Function::kScatter) return nullptr;
    const Seat* root = SeatIn(observation_, places_, communicator, operation.peer);
    if (root == nullptr || root->position > operation.sequence) return nullptr;
    const bool is_there = root->is_outstanding && root->start != Start::kNotStarted;
    return root->position == operation.sequence && is_there ? nullptr : root;
  }

  const Observation& observation_;
  const Places& places_;
  std::vector<uint32_t> of_;
  std::vector<Missed> found_;
  std::vector<Absent> absent_;
};

}  // namespace

std::vector<Missed> FindMissed(const Observation& observation, const Places& places, const Waits& waits) {
  MissedFinder finder(observation, places);
  for (uint32_t c = 0; c < places.groups.size(); ++c) finder.FindIn(c);
  for (uint32_t rank = 0; rank < places.ranks.size(); ++rank) {
    const MissedBy& by = waits.missed_by[rank];
    if (!by.is_sure || !observation.ranks[rank].is_alive) continue;
    const Missed missed{.communicator = by.communicator, .operation = by.operation, .by = by.rank, .age = by.wait};
    finder.AddTo(rank, missed, kUnknown, places.ranks[rank].is_before);
  }
  return std::move(finder).Found();
}

}  // namespace aimaster::c4d
