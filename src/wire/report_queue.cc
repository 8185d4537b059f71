#include "wire/report_queue.h"

#include <utility>

namespace aimaster {

const v1::Report& ReportQueue::Push(v1::Report report) {
  report.set_sequence(next_++);
  return reports_.emplace_back(std::move(report));
}

void ReportQueue::Acknowledge(uint64_t sequence) {
  if (sequence >= next_) return;
  while (!reports_.empty() && reports_.front().sequence() <= sequence) reports_.pop_front();
}

uint64_t ReportQueue::first_unacknowledged() const { return reports_.empty() ? next_ : reports_.front().sequence(); }

}  // namespace aimaster
