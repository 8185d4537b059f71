// DelayMatrix: transfers from rank to rank, the sender's number for the row and the receiver's for the column. One cell
// that is hot is a connection, a hot row is the sender's side, a hot column the receiver's.
//
// Each delay is taken against the usual one of its size, over all cells: so that large messages are not slow ones.
// Keeping every cell of 16,384 × 16,384 was not considered: ranks talk to a few others, and memory has a bound.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "c4d/verdict.h"

namespace aimaster::c4d {

struct DelayLimits {
  size_t cells_max = 65'536;
  size_t verdicts_max = 16;
  uint32_t transfers_min = 4;  // of a cell, for it to count
  double hot = 2;              // times the usual delay
  double most_of = 0.6;        // of a row or column, that is hot
};

class DelayMatrix {
 public:
  explicit DelayMatrix(const DelayLimits& limits = {}) : limits_(limits) {}

  void Add(Rank from, Rank to, uint64_t bytes, Duration delay);
  // Rows and columns first, then single cells, each the hottest first. Then the matrix is empty.
  std::vector<Verdict> CloseWindow();

  uint64_t dropped() const { return dropped_; }

 private:
  struct Cell {
    uint64_t count = 0;
    Duration total{};
  };
  using Key = std::tuple<uint32_t, uint32_t, uint8_t>;  // from, to, power of two of the bytes

  DelayLimits limits_;
  std::map<Key, Cell> cells_;
  uint64_t dropped_ = 0;
};

}  // namespace aimaster::c4d
