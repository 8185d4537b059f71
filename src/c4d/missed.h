// Missed: who is outside of communication while others wait for it. Such a rank has nothing outstanding, so it waits
// for nobody; and whoever has issued what it has not, however far ahead, misses it. That does not ask what holds the
// others up now, so it is found also where those between are not observed.
//
// Where it is told what devices have begun, whoever has begun nothing of what it has issued is missed as well: its
// device is stuck before. And only those miss somebody whose devices have begun, and for only as long.
#pragma once

#include <vector>

#include "c4d/waits.h"

namespace aimaster::c4d {

struct Missed {
  uint32_t rank = 0;
  uint32_t communicator = kNone;
  uint64_t sequence = kUnknown;  // the collective that it has not issued; unknown: an operation from rank to rank
  uint32_t operation = kNone;    // the one of somebody else that has waited longest
  uint32_t by = kNone;           // whose that is
  Duration age = kNoAge;         // since that began to wait, at the least
  bool has_issued = false;       // the program has come to it, and the device has not
};

// By rank, each once: the operation in which it is missed for longest; of those that are as long, a collective.
std::vector<Missed> FindMissed(const Observation& observation, const Places& places, const Waits& waits);

}  // namespace aimaster::c4d
