#include "agent/stack_release.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "agent/stack_limits.h"
#include "agent/stack_processes.h"

namespace aimaster::agent {
namespace {

std::vector<ProcessIdentity> WithDescendants(std::vector<StackTarget> targets) {
  StackOrder order;
  order.targets = std::move(targets);
  std::vector<ProcessIdentity> processes;
  for (const StackProcess& found : FindStackProcesses(order).processes) processes.push_back(found.process);
  return processes;
}

void Signal(const ProcessIdentity& process, int signal) {
  if (const int pidfd = OpenPidfd(process); pidfd >= 0) {
    SendSignal(pidfd, signal);
    ::close(pidfd);
  }
}

}  // namespace

// The helper first: a tool that it starts after our look is not among those that we kill, but dies with it.
StackRelease::StackRelease(const ProcessIdentity& helper, const std::vector<StackTarget>& targets,
                           const std::vector<ProcessIdentity>& stopped_before)
    : dying_(WithDescendants({{.process = helper, .rank = 0, .instance = {}, .error_output = {}}})),
      held_(WithDescendants(targets)),
      until_(Clock::now() + kReleaseMax),
      busy_(Clock::now()) {
  for (const ProcessIdentity& process : dying_) Signal(process, SIGKILL);
  std::erase_if(held_, [&](const ProcessIdentity& process) {
    return std::ranges::find(stopped_before, process) != stopped_before.end();
  });
}

bool StackRelease::Look(Clock::time_point now) {
  if (std::ranges::any_of(dying_, IsAlive)) busy_ = now;
  for (const ProcessIdentity& process : held_) {
    const char state = StateOf(process);
    if (state == 'T') Signal(process, SIGCONT);
    if (state == 'T' || state == 't') busy_ = now;
  }
  return now >= until_ || now - busy_ >= kReleaseQuiet;
}

}  // namespace aimaster::agent
