// ReportQueue: what an agent has said and the master has not yet made durable. A pure state machine: numbers go out
// ascending, an acknowledgement takes a prefix away, a new connection sends what is left again. Together with a
// receiver that ignores numbers it has seen, nothing is lost and nothing is counted twice. Acknowledging each report by
// itself was rejected: the master commits in groups and in order, so one number says it all.
#pragma once

#include <cstdint>
#include <deque>

#include "aimaster/v1/agent.pb.h"

namespace aimaster {

// Not thread-safe; belongs to the agent's loop.
class ReportQueue {
 public:
  // Gives the report its number and keeps it until acknowledged. The reference is good until then.
  const v1::Report& Push(v1::Report report);
  // All reports up to this number are durable. A number that was never given out changes nothing: it was meant for
  // another agent process, and believing it would lose reports.
  void Acknowledge(uint64_t sequence);

  const std::deque<v1::Report>& unacknowledged() const { return reports_; }
  uint64_t first_unacknowledged() const;  // the next number to come when there is none

 private:
  std::deque<v1::Report> reports_;
  uint64_t next_ = 1;
};

}  // namespace aimaster
