// Which processes there are to take stacks of, and what /proc says of each before anybody attaches to it. What may
// block on a process that is stuck in the kernel (its command line, its environment, its map) is only read of one that
// is not.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/process_identity.h"
#include "agent/stack_order.h"
#include "stacks/frame.h"

namespace aimaster::agent {

struct StackProcess {
  ProcessIdentity process;
  size_t target = 0;  // of the order: which rank's it is
  pid_t parent = 0;
  uint32_t rank = stacks::kNone;  // that it has for itself; beneath a launcher, the one that the launcher gave it
  bool is_child = false;          // one that a rank's process has started
  bool is_python = false;
  bool was_stopped = false;     // by a signal, before we came
  std::string command;          // its name, as the kernel has it
  std::string fallback_signal;  // AIMASTER_STACK_SIGNAL of its environment
};

struct FoundProcesses {
  std::vector<StackProcess> processes;  // of each target its own first
  std::vector<size_t> ended;            // targets whose process is gone
  size_t left_out = 0;                  // beyond kProcessesPerRankMax
};

// The targets and what they have started, and what that has started.
FoundProcesses FindStackProcesses(const StackOrder& order);

// Threads of it that don't leave the kernel. Several looks, some 60 ms apart, decide: every write to a disk is an
// uninterruptible sleep of a moment.
std::vector<std::vector<pid_t>> FindStuckThreads(const std::vector<StackProcess>& processes);

// What the kernel says of all threads of a process; nothing is attached to.
std::vector<stacks::Thread> KernelThreads(pid_t pid, const std::vector<pid_t>& stuck);

// Fills in what needs the process's memory map: is_python, rank, fallback_signal. Not of a stuck one.
void LookInside(StackProcess& process);
// With all looked into: whose process has given ranks to those beneath it is a launcher, and no rank.
void SortOutLaunchers(std::vector<StackProcess>& processes);

// The state of a process as in /proc/<pid>/stat; 0: it is gone.
char StateOf(const ProcessIdentity& process);
// Who traces it, a debugger say; 0: nobody.
pid_t TracerOf(pid_t pid);
// Whether it has a handler for the signal.
bool Catches(pid_t pid, int signal);
// The number of a signal: "SIGUSR1", "USR1" or "10"; none when it is no signal that may be sent for this.
std::optional<int> SignalNumber(std::string_view name);

// After a tool has let go of a process, or died over it: what it stopped goes on, and what was stopped is stopped.
void RestoreState(const StackProcess& process);

// The processes, among the targets and what they have started, that are stopped now.
std::vector<ProcessIdentity> StoppedProcesses(const std::vector<StackTarget>& targets);

}  // namespace aimaster::agent
