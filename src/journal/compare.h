// Compare: what was decided beside what is decided now, in words for people.
#pragma once

#include <string>
#include <vector>

#include "engine/job_state.h"
#include "journal/stored_state.h"

namespace aimaster {

// "'Restart: restart 1 of at most 3: …'", several joined by "and"; "nothing".
std::string DescribeDecisions(const std::vector<Decision>& decisions);

// Whether a job goes the same way after either: the same kinds in the same order, whatever the words.
bool LeadToTheSame(const std::vector<Decision>& a, const std::vector<Decision>& b);

// "reason 2 of 'Restart': recorded 'a', now 'b'": the first thing in which they differ; empty: nothing.
std::string DecisionDifference(const std::vector<Decision>& recorded, const std::vector<Decision>& now);

// "status: Running, not Restarting": the first field that differs; which other row, where the rest is the same. Empty:
// nothing differs.
std::string StateDifference(const StoredState& recorded, const JobState& derived);

}  // namespace aimaster
