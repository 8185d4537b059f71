// Sweep finds what a lost shim left behind. A process that wants to hide can leave its session, its group or its
// environment, but rarely all of them in one step and before anyone looked; so several traces are followed, each enough
// by itself, and whoever descends from a found one is found too:
//
//   marker        AIMASTER_JOB_ID, _INSTANCE and _ATTEMPT in its environment
//   session       the shim's session, as long as that number still means the shim's
//   descendants   pid and start time in the list that the shim kept
//   re-parented   it became a child of ours, and we started no such child: we are a subreaper
//
// A cgroup would say it in one word; an ordinary user often has none.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <expected>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/process_identity.h"

namespace aimaster::agent {

struct SweepTarget {
  std::string job_id;
  std::string instance_name;
  uint32_t attempt = 0;
  ProcessIdentity shim;  // the lost one; all zero when it was never known
  std::vector<ProcessIdentity> descendants;
  pid_t own_pid = 0;
  std::set<pid_t> own_children;  // the living shims of ours
};

struct RunningProcess {
  pid_t pid = 0;
  ProcessStat stat;
  bool has_marker = false;
};

// `environment`: NUL-separated NAME=VALUE, as in /proc/<pid>/environ.
bool HasMarker(std::string_view environment, const SweepTarget& target);

// Which attempt of this job, started on this node, a process with this environment belongs to; by the instance's name.
std::optional<std::pair<std::string, uint32_t>> MarkedAttempt(std::string_view environment, std::string_view job_id,
                                                              std::string_view node_name);
// All of which there is a living process.
std::expected<std::set<std::pair<std::string, uint32_t>>, int> ListMarkedAttempts(std::string_view job_id,
                                                                                  std::string_view node_name);

// Those of `processes` that belong to the target, dead ones left out. Pure.
std::vector<ProcessIdentity> FindRemnants(const std::vector<RunningProcess>& processes, const SweepTarget& target);

// All processes that can be seen now; an errno when we can't look, for then nothing was found out.
std::expected<std::vector<RunningProcess>, int> ListProcesses(const SweepTarget& target);

// How many there are; nobody is touched.
std::expected<size_t, int> CountRemnants(const SweepTarget& target);
// One pass: sends SIGKILL to everyone found. The number found; 0 means that the attempt is gone.
std::expected<size_t, int> SweepOnce(const SweepTarget& target);

}  // namespace aimaster::agent
