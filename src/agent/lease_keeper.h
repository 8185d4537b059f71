// LeaseKeeper writes the node's lease (shim/lease_format.h), and knows by the same rule as the shims when there has
// been no master for too long (agent/lease_count.h).
//
// The file outlives the agent: one that is started again without a master does not begin to count anew.
#pragma once

#include <cstdint>
#include <string>

#include "agent/lease_count.h"
#include "core/error.h"
#include "core/time.h"

namespace aimaster::agent {

class LeaseKeeper {
 public:
  // `timeout`: what is in force until a master says otherwise.
  LeaseKeeper(std::string path, std::string boot_id, int64_t writer, Duration timeout);
  ~LeaseKeeper();
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;

  // Takes over what an earlier agent of this boot left, or makes the file. Without room for it the error says so, and
  // the agent lives on: Renew then fails.
  Status Open(Monotonic now);

  // There is a master, now. An error when the shims can't see it in the file.
  Status Renew(Monotonic now, Duration timeout);

  // As in LeaseCount.
  Duration Look(Monotonic now) { return count_.Look(now); }
  Duration pace() const { return count_.pace(); }
  Duration timeout() const { return count_.timeout(); }
  const std::string& path() const { return path_; }

 private:
  Status Write(Monotonic renewed);

  std::string path_;
  std::string boot_id_;
  int64_t writer_;
  LeaseCount count_;
  int fd_ = -1;
};

}  // namespace aimaster::agent
