// Places: where everybody stands. Of each group a row of rungs, one for each operation at which members stand; of each
// rank the operations that hold it up now.
//
// Two things follow from how devices work. Within a group operations are done in the order in which they were issued,
// so a member stands at its oldest that has not completed, or else before the next that it will issue. And over its
// groups a rank's device is held up by the oldest of all: what was issued later waits in the queue, and that all others
// have come to it says nothing. So a rank is "at" a collective only where nothing older is outstanding.
//
// A send needs nobody to wait for it, and sends and receives go on side by side: those older than the oldest collective
// all count. Where a source lost what a rank issued, or does not tell when, several operations may be the oldest; then
// all of them count as what it waits for, and it is surely at none.
//
// All that is a guess at what a device does, and not needed where a source tells: a rank is at what its device has
// begun, for no longer than that, and what was issued and not begun holds nobody up. A device that has begun nothing
// waits for nobody.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "c4d/analysis_limits.h"
#include "c4d/observation.h"

namespace aimaster::c4d {

// A member in its group.
struct Seat {
  uint64_t position = 0;          // the collective that it stands at, or before
  Duration age = kNoAge;          // since it issued that; where its source has not kept it: at least so long
  Duration wait = kNoAge;         // for how long it has waited in that, at the least
  uint32_t rank = 0;              // index in the observation's ranks
  uint32_t state = kNone;         // none: it was never seen in this group, nor has the group ever completed anything
  uint32_t operation = kNone;     // that it stands at, where the source kept it
  Start start = Start::kUnknown;  // of that
  bool is_outstanding = false;    // it has issued that; else it stands before it
  bool trails = false;            // others have completed it, which they can't alone: so it did its part, and is stuck
};

// The seats of a group at one position.
struct Rung {
  uint64_t position = 0;
  uint32_t communicator = 0;
  uint32_t begin = 0, end = 0;  // in seats; its group's lower rungs lie before, its higher rungs behind
  uint32_t operation = kNone;   // of one who stands at it, where anybody's was kept
  bool is_waited = false;       // somebody stands at it, not only before it
  bool is_completed = false;    // somebody has completed it
  Duration completed = kNoAge;  // for how long at least, where that is told: since they last did anything in the group
};

// What holds up a rank: a collective, with its state, or one operation from rank to rank.
struct Head {
  uint32_t state = kNone;
  uint32_t operation = kNone;  // of point-to-point; none: the collective at which the state stands
};

struct GroupPlaces {
  uint32_t first_rung = 0, rung_count = 0;
  uint32_t first_state = 0, state_count = 0;  // in the observation's
  uint64_t issued_min = kUnknown;             // over its observed members
  uint64_t issued_max = 0;
  uint32_t unseen = 0;  // members of which it is not known where they stand
  bool carries_point_to_point = false;
};

struct RankPlaces {
  uint32_t first_head = 0, head_count = 0;
  Duration age = kNoAge;        // of the oldest of what may hold it up
  Duration quiet = kNoAge;      // since it last did anything in any group
  uint32_t at = kNone;          // the state with the collective that it is surely at
  uint32_t trails = 0;          // groups in which others completed what it has issued and not completed
  uint32_t outstanding = 0;     // groups in which it has a collective outstanding
  bool is_outstanding = false;  // it has issued something that has not completed
  bool is_before = false;       // that is so, and its device has begun nothing of it
  bool is_ordered = true;       // which of its operations are the oldest is known
  bool has_unknown = false;     // an operation that its source has lost may be all that holds it up
  bool has_lost = false;        // sends or receives that its source has lost may be outstanding
};

struct Places {
  std::vector<Seat> seats;            // by group, position, rank
  std::vector<Rung> rungs;            // by group, position
  std::vector<GroupPlaces> groups;    // one for each communicator
  std::vector<RankPlaces> ranks;      // one for each rank
  std::vector<Head> heads;            // by rank
  std::vector<uint32_t> states;       // all that are to be regarded, by rank
  std::vector<uint32_t> first_state;  // of each rank in states, and the end
  std::vector<uint32_t> seat_of;      // of each state; none: it is not to be regarded
  std::vector<uint32_t> rung_of;      // of each state
  std::vector<bool> is_head;          // of each operation from rank to rank

  std::span<const Head> HeadsOf(uint32_t rank) const {
    return std::span(heads).subspan(ranks[rank].first_head, ranks[rank].head_count);
  }
  std::span<const uint32_t> StatesOf(uint32_t rank) const {
    return std::span(states).subspan(first_state[rank], first_state[rank + 1] - first_state[rank]);
  }
  std::span<const Seat> SeatsOf(const Rung& rung) const {
    return std::span(seats).subspan(rung.begin, rung.end - rung.begin);
  }
  bool IsStalled(uint32_t rank) const { return ranks[rank].trails > 0; }
  // It waits for nobody: its program is elsewhere, or its device is.
  bool IsIdle(uint32_t rank) const { return !ranks[rank].is_outstanding || ranks[rank].is_before; }
};

Places FindPlaces(const Observation& observation);

// For how long a rank has waited in an operation, at the least: since its device has begun it, where that is told. When
// exactly that was no source tells; but the last time that any counter of the group went up was not before.
Duration WaitOf(const MemberState& state, const Operation& operation);

// The shorter of two, where it is known.
Duration Least(Duration a, Duration b);

// A member can't have completed it before all have issued it.
bool NeedsAll(Function function);

// The seat of a rank in a group, by its state.
const Seat* SeatIn(const Observation& observation, const Places& places, uint32_t communicator, Rank rank);

}  // namespace aimaster::c4d
