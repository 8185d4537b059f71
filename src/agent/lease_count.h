// LeaseCount counts for how long an agent has had no master, by the rule of the shims (shim/lease_rule.h): without a
// clock and without the file, which LeaseKeeper adds.
//
// It is apart from the file so that the simulation counts with the same code. A copy there counted with another pace,
// and found in itself what the agent does not do.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "agent/limits.h"
#include "core/time.h"
#include "shim/lease_rule.h"

namespace aimaster::agent {

class LeaseCount {
 public:
  // `timeout`: what is in force until a master says otherwise.
  explicit LeaseCount(Duration timeout) : timeout_(timeout) {}

  // `renewed`: what an earlier agent of this boot left behind. A master that has just come needs a moment to be heard
  // by an agent that has just come.
  void Begin(Monotonic now, std::optional<Monotonic> renewed) {
    const Monotonic earliest = now + (std::min<Duration>(timeout_, kWelcomeMax) - timeout_);
    Restart(renewed ? std::max(*renewed, earliest) : now);
  }

  // There is a master, now. To be said every pace() while one leads, and when it is lost.
  void Renew(Monotonic now, Duration timeout) {
    timeout_ = timeout;
    Restart(now);
  }

  // One look, to be made every pace(). For how long there has been no master when that is too long, else zero.
  Duration Look(Monotonic now) {
    const int64_t now_ns = now.since_origin.count();
    const bool has_expired = LeaseHasExpired(&watch_, now_ns, timeout_.count(), pace().count());
    return has_expired ? Duration(now_ns - watch_.since_ns) : Duration::zero();
  }

  Duration pace() const { return std::min<Duration>(Duration(LeasePaceNs(timeout_.count())), kLeasePaceMax); }
  Duration timeout() const { return timeout_; }

 private:
  void Restart(Monotonic since) { watch_ = BeginLeaseWatch(since.since_origin.count()); }

  Duration timeout_;
  LeaseWatch watch_{};
};

}  // namespace aimaster::agent
