// When is there nobody any more? One rule for the agent and for its shims, without a clock and without I/O.
//
// Think of a night watchman who looks at the clock at each round: a lamp that has been dark for too long on three
// rounds in a row is out. If he finds that he himself missed rounds (the machine was suspended, a container frozen, a
// process stopped and continued), then he knows nothing of the time in between, for whoever renews was probably asleep
// too, and counts from his waking on. A single comparison of two times was rejected: it kills a healthy job at every
// thaw, in the moment before the agent has had a chance to renew.
//
//   last renewal                         timeout (+ margin)
//   │◀────────────────────────────────────────▶│ look  look  look → expired
//   │      a gap in the looks: the counting begins again at its end
#ifndef AIMASTER_SHIM_LEASE_RULE_H_
#define AIMASTER_SHIM_LEASE_RULE_H_

#include <stdbool.h>
#include <stdint.h>

enum { kLeaseLooksWanted = 3, kLeaseLooksPerTimeout = 8, kLeaseGapLooks = 4 };
#define LEASE_PACE_MIN_NS INT64_C(100000000)
#define LEASE_PACE_MAX_NS INT64_C(10000000000)
#define LEASE_MARGIN_MIN_NS INT64_C(1000000000)
#define LEASE_MARGIN_MAX_NS INT64_C(30000000000)
#define LEASE_GAP_MIN_NS INT64_C(500000000)

struct LeaseWatch {
  int64_t since_ns;      // from when on there has been no master, as far as this watcher can tell
  int64_t last_look_ns;  // 0: none yet
  int expired_looks;     // in a row
};

static inline int64_t LeaseBetween(int64_t value, int64_t low, int64_t high) {
  return value < low ? low : value > high ? high : value;
}

// How often to look.
static inline int64_t LeasePaceNs(int64_t timeout_ns) {
  return LeaseBetween(timeout_ns / kLeaseLooksPerTimeout, LEASE_PACE_MIN_NS, LEASE_PACE_MAX_NS);
}

// What a shim waits beyond the timeout: the agent can stop all ranks of the node at once and say so, so it goes first.
static inline int64_t LeaseMarginNs(int64_t timeout_ns) {
  return LeaseBetween(timeout_ns / 4, LEASE_MARGIN_MIN_NS, LEASE_MARGIN_MAX_NS);
}

static inline struct LeaseWatch BeginLeaseWatch(int64_t now_ns) {
  const struct LeaseWatch watch = {now_ns, 0, 0};
  return watch;
}

static inline void LeaseRenewed(struct LeaseWatch* watch, int64_t renewed_ns) {
  if (renewed_ns > watch->since_ns) watch->since_ns = renewed_ns;
}

// One look at `now_ns`. True when there has been no master for `patience_ns` in kLeaseLooksWanted looks in a row.
static inline bool LeaseHasExpired(struct LeaseWatch* watch, int64_t now_ns, int64_t patience_ns, int64_t pace_ns) {
  const int64_t gap_ns = pace_ns * kLeaseGapLooks > LEASE_GAP_MIN_NS ? pace_ns * kLeaseGapLooks : LEASE_GAP_MIN_NS;
  const bool missed_looks = watch->last_look_ns != 0 && now_ns - watch->last_look_ns > gap_ns;
  watch->last_look_ns = now_ns;
  if (missed_looks) watch->since_ns = now_ns;
  watch->expired_looks = now_ns - watch->since_ns >= patience_ns ? watch->expired_looks + 1 : 0;
  return watch->expired_looks >= kLeaseLooksWanted;
}

#endif  // AIMASTER_SHIM_LEASE_RULE_H_
