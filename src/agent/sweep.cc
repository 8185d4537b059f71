#include "agent/sweep.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <map>
#include <optional>

#include "agent/small_file.h"

namespace aimaster::agent {
namespace {

constexpr size_t kEnvironmentMaxBytes = 8 << 20;

std::optional<pid_t> ParsePid(const char* name) {
  const std::string_view text(name);
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  return error == std::errc{} && end == text.data() + text.size() && pid > 0 ? std::optional(pid) : std::nullopt;
}

// Ours alone: the process may well be there. Anything else says that it is gone, or none of our business.
bool IsWant(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM; }

// Ourselves and everyone above us: whatever marks they bear, they are not what we are looking for.
std::set<pid_t> FindAncestry(const std::map<pid_t, const RunningProcess*>& by_pid, pid_t own_pid) {
  std::set<pid_t> ancestry{0, 1};
  for (pid_t pid = own_pid; ancestry.insert(pid).second;) {
    const auto found = by_pid.find(pid);
    if (found == by_pid.end()) break;
    pid = found->second->stat.parent;
  }
  return ancestry;
}

// False once another process leads a session of that number.
bool IsSessionStillTheShims(const std::map<pid_t, const RunningProcess*>& by_pid, const ProcessIdentity& shim) {
  const auto leader = by_pid.find(shim.pid);
  return shim.pid > 1 && (leader == by_pid.end() || leader->second->stat.start_ticks == shim.start_ticks);
}

}  // namespace

bool HasMarker(std::string_view environment, const SweepTarget& target) {
  bool job = false, instance = false, attempt = false;
  const std::string wanted_attempt = std::to_string(target.attempt);
  while (!environment.empty()) {
    const size_t end = std::min(environment.find('\0'), environment.size());
    const std::string_view variable = environment.substr(0, end);
    const auto is = [variable](std::string_view name, std::string_view value) {
      return variable.size() == name.size() + value.size() && variable.starts_with(name) && variable.ends_with(value);
    };
    job = job || is("AIMASTER_JOB_ID=", target.job_id);
    instance = instance || is("AIMASTER_INSTANCE=", target.instance_name);
    attempt = attempt || is("AIMASTER_ATTEMPT=", wanted_attempt);
    environment.remove_prefix(std::min(end + 1, environment.size()));
  }
  return job && instance && attempt;
}

std::optional<std::pair<std::string, uint32_t>> MarkedAttempt(std::string_view environment, std::string_view job_id,
                                                              std::string_view node_name) {
  std::map<std::string_view, std::string_view> variables;
  while (!environment.empty()) {
    const size_t end = std::min(environment.find('\0'), environment.size());
    const std::string_view variable = environment.substr(0, end);
    const size_t equals = variable.find('=');
    if (variable.starts_with("AIMASTER_") && equals != std::string_view::npos) {
      variables[variable.substr(0, equals)] = variable.substr(equals + 1);
    }
    environment.remove_prefix(std::min(end + 1, environment.size()));
  }
  const std::string_view number = variables["AIMASTER_ATTEMPT"];
  uint32_t attempt = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), attempt);
  if (job_id.empty() || variables["AIMASTER_JOB_ID"] != job_id || variables["AIMASTER_NODE"] != node_name ||
      variables["AIMASTER_INSTANCE"].empty() || error != std::errc{} || end != number.data() + number.size()) {
    return std::nullopt;
  }
  return std::pair(std::string(variables["AIMASTER_INSTANCE"]), attempt);
}

std::expected<std::set<std::pair<std::string, uint32_t>>, int> ListMarkedAttempts(std::string_view job_id,
                                                                                  std::string_view node_name) {
  std::set<std::pair<std::string, uint32_t>> attempts;
  const auto names = ListDirectory("/proc");
  if (!names) return std::unexpected(names.error());
  for (const std::string& name : *names) {
    if (!ParsePid(name.c_str())) continue;
    const auto environment = ReadWhole("/proc/" + name + "/environ", kEnvironmentMaxBytes);  // a zombie has none
    if (!environment && IsWant(environment.error())) return std::unexpected(environment.error());
    if (auto attempt = environment ? MarkedAttempt(*environment, job_id, node_name) : std::nullopt) {
      attempts.insert(std::move(*attempt));
    }
  }
  return attempts;
}

std::vector<ProcessIdentity> FindRemnants(const std::vector<RunningProcess>& processes, const SweepTarget& target) {
  std::map<pid_t, const RunningProcess*> by_pid;
  for (const RunningProcess& process : processes) by_pid[process.pid] = &process;
  std::set<pid_t> spared = FindAncestry(by_pid, target.own_pid);
  spared.insert(target.own_children.begin(), target.own_children.end());
  const bool session_counts = IsSessionStillTheShims(by_pid, target.shim);

  const auto has_trace = [&](const RunningProcess& process) {
    const ProcessIdentity identity{process.pid, process.stat.start_ticks};
    if (process.has_marker || identity == target.shim) return true;
    if (session_counts && process.stat.session == target.shim.pid &&
        process.stat.start_ticks >= target.shim.start_ticks) {
      return true;
    }
    if (target.own_pid > 1 && process.stat.parent == target.own_pid) return true;
    return std::ranges::find(target.descendants, identity) != target.descendants.end();
  };

  std::set<pid_t> found;
  for (const RunningProcess& process : processes) {
    if (!spared.contains(process.pid) && has_trace(process)) found.insert(process.pid);
  }
  // Children of the found, and theirs, until nobody is added.
  for (bool grew = true; grew;) {
    grew = false;
    for (const RunningProcess& process : processes) {
      if (spared.contains(process.pid) || !found.contains(process.stat.parent)) continue;
      grew = found.insert(process.pid).second || grew;
    }
  }
  std::vector<ProcessIdentity> remnants;
  for (const pid_t pid : found) {
    const RunningProcess& process = *by_pid[pid];
    if (!IsDeadState(process.stat.state)) remnants.push_back({pid, process.stat.start_ticks});
  }
  return remnants;
}

std::expected<std::vector<RunningProcess>, int> ListProcesses(const SweepTarget& target) {
  std::vector<RunningProcess> processes;
  const auto names = ListDirectory("/proc");
  if (!names) return std::unexpected(names.error());
  for (const std::string& name : *names) {
    const auto pid = ParsePid(name.c_str());
    if (!pid) continue;
    const auto text = ReadWhole("/proc/" + name + "/stat", 4096);
    if (!text && IsWant(text.error())) return std::unexpected(text.error());
    const auto stat = text ? ParseStat(*text) : std::nullopt;
    if (!stat) continue;  // gone meanwhile
    const auto environment = ReadWhole("/proc/" + name + "/environ", kEnvironmentMaxBytes);
    if (!environment && IsWant(environment.error())) return std::unexpected(environment.error());
    processes.push_back({*pid, *stat, environment && HasMarker(*environment, target)});
  }
  return processes;
}

std::expected<size_t, int> CountRemnants(const SweepTarget& target) {
  const auto processes = ListProcesses(target);
  if (!processes) return std::unexpected(processes.error());
  return FindRemnants(*processes, target).size();
}

std::expected<size_t, int> SweepOnce(const SweepTarget& target) {
  const auto processes = ListProcesses(target);
  if (!processes) return std::unexpected(processes.error());
  const auto remnants = FindRemnants(*processes, target);
  for (const ProcessIdentity& process : remnants) {
    const int pidfd = OpenPidfd(process);
    if (pidfd < 0) continue;
    SendSignal(pidfd, SIGKILL);
    ::close(pidfd);
  }
  return remnants.size();
}

}  // namespace aimaster::agent
