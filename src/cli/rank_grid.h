// RankGrid: all ranks of a job as a picture, a sign for each, so that one sees at a glance where among thousands it is.
//
//   Ranks: H hangs in communication, w waits for them, . nothing found
//          0  ........ ........ ....H... ........
//         32  wwwwwwww wwwwwwww ........ ........
//         64  to 16383 all .
//
// Rows of which every rank has the same sign are one line, however many there are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal.h"
#include "core/ids.h"

namespace aimaster::cli {

// The weaker first: where several are true of a rank, the last of them is shown.
enum class RankSign : uint8_t {
  kNothing,
  kNotSeen,
  kWaits,
  kSlowOutside,
  kSlowInside,
  kOfGroup,
  kWrongCall,
  kHangsOutside,
  kHangsInside,
};

// Of the ranks that a verdict names; `kind` as in c4d::Name. kNothing: it is about no rank.
RankSign SignOf(std::string_view kind, bool is_group);

class RankGrid {
 public:
  explicit RankGrid(size_t ranks) : signs_(ranks, RankSign::kNothing) {}

  // Ranks beyond those that there are make it grow.
  void Mark(std::span<const Rank> ranks, RankSign sign);
  // Empty where nothing is marked, or where a sentence says as much.
  std::string Draw(const Terminal& terminal) const;

 private:
  std::string Legend() const;
  std::string Row(size_t first, size_t count, const Terminal& terminal) const;

  std::vector<RankSign> signs_;
};

}  // namespace aimaster::cli
