// RankSet: some of a job's ranks, as people write them: 0-5,7.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace aimaster {

class RankSet {
 public:
  RankSet() = default;
  explicit RankSet(std::vector<uint32_t> ranks);  // in any order, also several times

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // First and last of each run, ascending.
  const std::vector<std::pair<uint32_t, uint32_t>>& runs() const { return runs_; }
  // "0-5,7"; with a bound, "0-5,7,… (812)" of more runs than that.
  std::string Text(size_t runs_max = SIZE_MAX) const;
  bool operator==(const RankSet&) const = default;

 private:
  std::vector<std::pair<uint32_t, uint32_t>> runs_;
  size_t size_ = 0;
};

}  // namespace aimaster
