// DiskGuard looks at the room that is left where this node's files lie, and keeps some for what must not fail.
//
// A full disk kills ranks that print, and it keeps us from writing down what became of them. So there is a reserve: a
// file that is there for nothing but to be given back, and a watermark below which old output is given back as well.
// The other way round, refusing to start where little is left, was rejected: disks fill up in mid-run.
#pragma once

#include <cstdint>
#include <string>

#include "core/error.h"

namespace aimaster::agent {

struct DiskSpace {
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;        // for an ordinary user
  uint64_t bytes_per_second = 0;  // what the ranks print
};

enum class DiskState {
  kRoomy,
  kLooking,  // not scarce, but it may be a moment from now
  kScarce,
};

// Below this it is scarce: what is printed in a second has to fit, for the next look may be late on a busy machine.
uint64_t Watermark(const DiskSpace& space);
// What was scarce is roomy again only at twice the watermark, or it would change at every look. Pure.
DiskState Judge(const DiskSpace& space, DiskState before);

class DiskGuard {
 public:
  explicit DiskGuard(std::string reserve_path) : reserve_path_(std::move(reserve_path)) {}

  // Makes the reserve where there is room for it.
  void Open();
  // Nothing runs here any more.
  void Close();
  // Looks at the file system of `directory` and of the reserve; the scarcer one counts. Gives the reserve back, or
  // makes it again. Says in the log when the state changes.
  DiskState Look(const std::string& directory, uint64_t bytes_per_second);

 private:
  void MakeReserve();

  std::string reserve_path_;
  DiskState state_ = DiskState::kRoomy;
  bool has_reserve_ = false;
};

}  // namespace aimaster::agent
