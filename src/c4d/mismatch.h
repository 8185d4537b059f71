// Mismatch: members that stand at one number of their group with different operations. A program that takes another
// branch on one rank does that; each waits for what never comes.
#pragma once

#include <vector>

#include "c4d/places.h"

namespace aimaster::c4d {

enum class Difference : uint8_t {
  kNothing,
  kSize,       // count or type: some libraries take that, so alone it explains a hang only where nobody is missing
  kOperation,  // function or root
};

// Of one rung. Counts may differ where each member gives as much as it has.
Difference FindDifference(const Observation& observation, const Places& places, const Rung& rung);

// Members that stand at it with the same operation, the largest party first, ranks ascending in each.
struct Party {
  uint32_t operation = kNone;
  std::vector<uint32_t> ranks;
};
std::vector<Party> PartiesOf(const Observation& observation, const Places& places, const Rung& rung);

}  // namespace aimaster::c4d
