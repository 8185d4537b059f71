// Waits: the places of all as a graph of who waits for whom.
//
//   rank ──▶ operation ──▶ ranks that are not at it yet, and all rungs of the group below
//
// An operation from which no arrow leads has all it needs, and yet does not complete. A rank that others wait for and
// that has nothing outstanding is outside of communication. Those are where the search ends.
//
// Ranks could point at each other directly; of a group of 16,384 of which half wait for the other half that were 67
// million arrows. Through operations and rungs there are as many as members.
#pragma once

#include <vector>

#include "c4d/mismatch.h"
#include "c4d/places.h"
#include "c4d/wait_graph.h"

namespace aimaster::c4d {

// Operations from rank to rank that the devices of both sides have begun: all that they need is there. One of all that
// share a rank, as those which a rank does together end together.
struct Transfer {
  std::vector<uint32_t> ranks;  // ascending
  uint32_t operation = kNone;   // one of them
  uint32_t communicator = kNone;
  Duration wait = kNoAge;  // since the last of them was begun, at the least
};

// The operation from rank to rank that has waited longest for a rank which itself waits for nobody.
//
// It has no number that both sides know. Who has done something in the group since, and has nothing outstanding or left
// to do, may have done its part and come to the end of its program, and the other side lost that. But not two lose it
// at once.
struct MissedBy {
  uint32_t operation = kNone;  // none: there is no such
  uint32_t rank = 0;           // whose that is
  uint32_t communicator = kNone;
  Duration wait = kNoAge;
  bool is_sure = false;
};

struct Waits {
  explicit Waits(uint32_t nodes) : now(nodes), ever(nodes) {}

  WaitGraph now;                        // by what holds each rank up now
  WaitGraph ever;                       // by all that it has outstanding: who is no end here only seems to be one there
  std::vector<Difference> differences;  // of each rung
  // Of each operation from rank to rank, that of the other side, where both sides are at it: then it has all it needs.
  std::vector<uint32_t> met;
  std::vector<MissedBy> missed_by;     // of each rank
  std::vector<uint32_t> unseen_peers;  // of what holds somebody up, those of which nothing is known

  std::vector<Transfer> transfers;

  // The nodes: ranks, then one for all that is not seen, then two for each rung, then transfers.
  static uint32_t NodeOfUnseen(const Places& places) { return static_cast<uint32_t>(places.ranks.size()); }
  static uint32_t NodeOfOperation(const Places& places, uint32_t rung) { return NodeOfUnseen(places) + 1 + 2 * rung; }
  static uint32_t NodeOfRung(const Places& places, uint32_t rung) { return NodeOfUnseen(places) + 2 + 2 * rung; }
  static uint32_t NodeOfTransfer(const Places& places, size_t transfer) {
    return NodeOfOperation(places, static_cast<uint32_t>(places.rungs.size())) + static_cast<uint32_t>(transfer);
  }
};

Waits FindWaits(const Observation& observation, const Places& places);

}  // namespace aimaster::c4d
