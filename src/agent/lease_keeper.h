// LeaseKeeper writes the node's lease (shim/lease_format.h), and knows by the same rule as the shims
// (shim/lease_rule.h) when there has been no master for too long.
//
// The file outlives the agent: one that is started again without a master does not begin to count anew.
#pragma once

#include <cstdint>
#include <string>

#include "core/error.h"
#include "core/time.h"
#include "shim/lease_rule.h"

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

  // One look, to be made every pace(). For how long there has been no master when that is too long, else zero.
  Duration Look(Monotonic now);
  Duration pace() const;
  Duration timeout() const { return timeout_; }
  const std::string& path() const { return path_; }

 private:
  Status Write(Monotonic renewed);

  std::string path_;
  std::string boot_id_;
  int64_t writer_;
  Duration timeout_;
  int fd_ = -1;
  LeaseWatch watch_{};
};

}  // namespace aimaster::agent
