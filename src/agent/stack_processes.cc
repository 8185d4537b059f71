#include "agent/stack_processes.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <set>

#include "agent/small_file.h"
#include "agent/stack_limits.h"
#include "stacks/text_scan.h"

namespace aimaster::agent {
namespace {

constexpr size_t kProcFileMaxBytes = 64 << 10;
constexpr size_t kEnvironmentMaxBytes = 2 << 20;
constexpr size_t kMapsMaxBytes = 8 << 20;

std::string Proc(pid_t pid, std::string_view file) { return "/proc/" + std::to_string(pid) + "/" + std::string(file); }

std::optional<pid_t> Number(std::string_view name) {
  pid_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc{} || end != name.data() + name.size() || number <= 0) return std::nullopt;
  return number;
}

std::vector<pid_t> NumbersIn(const std::string& directory) {
  std::vector<pid_t> numbers;
  DIR* const entries = ::opendir(directory.c_str());
  if (entries == nullptr) return numbers;
  while (const dirent* entry = ::readdir(entries)) {
    if (const auto number = Number(entry->d_name)) numbers.push_back(*number);
  }
  ::closedir(entries);
  std::ranges::sort(numbers);
  return numbers;
}

std::vector<pid_t> ThreadsOf(pid_t pid) { return NumbersIn(Proc(pid, "task")); }

char ThreadState(pid_t pid, pid_t thread) {
  const auto text = ReadSmallFile(Proc(pid, "task/" + std::to_string(thread) + "/stat"), kProcFileMaxBytes);
  const auto stat = text ? ParseStat(*text) : std::nullopt;
  return stat ? stat->state : '\0';
}

// A line of the file, without its end.
std::string FirstLine(const std::string& path) {
  const std::string text = ReadSmallFile(path, kProcFileMaxBytes).value_or("");
  return text.substr(0, text.find('\n'));
}

std::string_view ValueIn(std::string_view status, std::string_view key) {
  for (std::string_view line; stacks::NextLine(status, line);) {
    if (stacks::Skip(line, key)) return stacks::Trim(line);
  }
  return {};
}

using Environment = std::map<std::string, std::string, std::less<>>;

Environment EnvironmentOf(pid_t pid) {
  static constexpr std::array<std::string_view, 6> kWanted = {
      "RANK", "TORCHELASTIC_RUN_ID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "AIMASTER_STACK_SIGNAL"};
  Environment found;
  const std::string text = ReadSmallFile(Proc(pid, "environ"), kEnvironmentMaxBytes).value_or("");
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view entry = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = entry.substr(0, equals);
    if (std::ranges::find(kWanted, name) != kWanted.end())
      found.try_emplace(std::string(name), entry.substr(equals + 1));
  }
  return found;
}

std::optional<uint32_t> RankIn(const Environment& environment, std::string_view name) {
  const auto found = environment.find(name);
  if (found == environment.end()) return std::nullopt;
  uint32_t rank = 0;
  const std::string& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error != std::errc{} || end != text.data() + text.size() || rank == stacks::kNone) return std::nullopt;
  return rank;
}

bool IsPython(pid_t pid, const std::string& command) {
  std::error_code error;
  const std::string program = std::filesystem::read_symlink(Proc(pid, "exe"), error).filename().string();
  if (program.starts_with("python") || program.starts_with("pypy") || command.starts_with("python")) return true;
  // A program of its own that has the interpreter as a library.
  const auto maps = ReadSmallFile(Proc(pid, "maps"), kMapsMaxBytes);
  return maps && maps->find("/libpython") != std::string::npos;
}

std::vector<stacks::Frame> KernelStack(pid_t pid, pid_t thread) {
  std::vector<stacks::Frame> frames;
  const std::string text =
      ReadSmallFile(Proc(pid, "task/" + std::to_string(thread) + "/stack"), kProcFileMaxBytes).value_or("");
  for (std::string_view rest = text; !rest.empty();) {  // "[<0>] pipe_read+0x12/0x40"
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (const size_t bracket = line.find("] "); bracket != std::string_view::npos) line.remove_prefix(bracket + 2);
    frames.push_back({.function = stacks::CleanName(line.substr(0, line.find('+'))),
                      .file = "kernel",
                      .line = 0,
                      .language = stacks::Language::kKernel});
  }
  std::ranges::reverse(frames);
  return frames;
}

}  // namespace

FoundProcesses FindStackProcesses(const StackOrder& order) {
  FoundProcesses found;
  std::multimap<pid_t, ProcessIdentity> children;
  std::map<pid_t, ProcessStat> all;
  for (const pid_t pid : NumbersIn("/proc")) {
    const auto stat = ReadStat(pid);
    if (!stat || IsDeadState(stat->state)) continue;
    all.emplace(pid, *stat);
    children.emplace(stat->parent, ProcessIdentity{pid, stat->start_ticks});
  }
  std::set<pid_t> taken;
  for (size_t target = 0; target < order.targets.size(); ++target) {
    const ProcessIdentity& own = order.targets[target].process;
    const auto stat = all.find(own.pid);
    if (stat == all.end() || stat->second.start_ticks != own.start_ticks) {
      found.ended.push_back(target);
      continue;
    }
    std::vector<ProcessIdentity> generation{own};
    size_t of_rank = 0;
    while (!generation.empty()) {
      std::vector<ProcessIdentity> next;
      for (const ProcessIdentity& process : generation) {
        if (!taken.insert(process.pid).second) continue;
        if (of_rank++ >= kProcessesPerRankMax) {
          ++found.left_out;
          continue;
        }
        const ProcessStat& now = all.at(process.pid);
        found.processes.push_back({.process = process,
                                   .target = target,
                                   .parent = now.parent,
                                   .rank = order.targets[target].rank,
                                   .is_child = process.pid != own.pid,
                                   .is_python = false,
                                   .was_stopped = now.state == 'T',
                                   .command = stacks::CleanName(FirstLine(Proc(process.pid, "comm"))),
                                   .fallback_signal = {}});
        const auto [first, last] = children.equal_range(process.pid);
        for (auto child = first; child != last; ++child) next.push_back(child->second);
      }
      generation = std::move(next);
    }
  }
  return found;
}

std::vector<std::vector<pid_t>> FindStuckThreads(const std::vector<StackProcess>& processes) {
  std::vector<std::vector<pid_t>> stuck(processes.size());
  bool is_any = false;
  for (size_t i = 0; i < processes.size(); ++i) {
    const pid_t pid = processes[i].process.pid;
    for (const pid_t thread : ThreadsOf(pid)) {
      if (ThreadState(pid, thread) == 'D') stuck[i].push_back(thread);
    }
    is_any = is_any || !stuck[i].empty();
  }
  for (int look = 1; is_any && look < kStuckLooks; ++look) {
    ::poll(nullptr, 0, static_cast<int>(kStuckLookEvery.count()));
    is_any = false;
    for (size_t i = 0; i < processes.size(); ++i) {
      const pid_t pid = processes[i].process.pid;
      std::erase_if(stuck[i], [pid](pid_t thread) { return ThreadState(pid, thread) != 'D'; });
      is_any = is_any || !stuck[i].empty();
    }
  }
  return stuck;
}

std::vector<stacks::Thread> KernelThreads(pid_t pid, const std::vector<pid_t>& stuck) {
  std::vector<stacks::Thread> threads;
  for (const pid_t thread : ThreadsOf(pid)) {
    if (threads.size() == stacks::kThreadsPerProcessMax) break;
    const std::string folder = "task/" + std::to_string(thread) + "/";
    const bool is_stuck = std::ranges::find(stuck, thread) != stuck.end();
    std::string wait = FirstLine(Proc(pid, folder + "wchan"));
    if (wait == "0" || wait.empty()) wait = "an unknown place";
    const std::string call = FirstLine(Proc(pid, folder + "syscall"));  // its number, then its arguments
    std::string what = (is_stuck ? "uninterruptible sleep in " : "in the kernel, in ") + wait;
    if (const auto number = Number(call.substr(0, call.find(' '))); number || call.starts_with("0 ")) {
      what += ", system call " + std::to_string(number.value_or(0));
    }
    stacks::Thread& row = threads.emplace_back();
    row.id = static_cast<uint64_t>(thread);
    row.name = stacks::CleanName(FirstLine(Proc(pid, folder + "comm")));
    row.is_waiting = !is_stuck;
    row.frames = KernelStack(pid, thread);
    row.frames.push_back(
        {.function = stacks::CleanName(what), .file = "kernel", .line = 0, .language = stacks::Language::kKernel});
    stacks::BoundFrames(row.frames);
  }
  return threads;
}

void LookInside(StackProcess& process) {
  const pid_t pid = process.process.pid;
  process.is_python = IsPython(pid, process.command);
  const Environment environment = EnvironmentOf(pid);
  if (const auto found = environment.find("AIMASTER_STACK_SIGNAL"); found != environment.end()) {
    process.fallback_signal = found->second;
  }
  if (!process.is_child) return;
  // mpirun's ranks know themselves by these, and nobody else has them: we scrub them from what a job inherits.
  for (const std::string_view name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    if (const auto rank = RankIn(environment, name)) {
      process.rank = *rank;
      process.is_child = false;
      return;
    }
  }
  // A torchrun beneath our rank gives its processes a run of its own; ours is named after the job.
  const auto run = environment.find("TORCHELASTIC_RUN_ID");
  if (run == environment.end() || run->second.starts_with("dlc")) return;
  if (const auto rank = RankIn(environment, "RANK")) {
    process.rank = *rank;
    process.is_child = false;
  }
}

void SortOutLaunchers(std::vector<StackProcess>& processes) {
  std::map<pid_t, size_t> by_pid;
  for (size_t i = 0; i < processes.size(); ++i) by_pid.emplace(processes[i].process.pid, i);
  std::set<size_t> launching;  // targets
  std::vector<bool> is_given(processes.size());
  for (size_t i = 0; i < processes.size(); ++i) {
    const auto parent = by_pid.find(processes[i].parent);
    if (processes[i].is_child || parent == by_pid.end()) continue;
    is_given[i] = true;
    launching.insert(processes[i].target);
  }
  for (size_t i = 0; i < processes.size(); ++i) {
    StackProcess& process = processes[i];
    if (launching.contains(process.target) && !is_given[i]) process.rank = stacks::kNone;
  }
  // Who is whose child, by the ranks as they are now: the first Python beneath a shell is the rank itself.
  for (StackProcess& process : processes) {
    process.is_child = false;
    for (auto parent = by_pid.find(process.parent); parent != by_pid.end();) {
      const StackProcess& above = processes[parent->second];
      if (above.rank != process.rank) break;
      if (above.is_python || !process.is_python) process.is_child = true;
      parent = by_pid.find(above.parent);
    }
  }
}

char StateOf(const ProcessIdentity& process) {
  const auto stat = ReadStat(process.pid);
  return stat && stat->start_ticks == process.start_ticks && !IsDeadState(stat->state) ? stat->state : '\0';
}

pid_t TracerOf(pid_t pid) {
  const auto status = ReadSmallFile(Proc(pid, "status"), kProcFileMaxBytes);
  return status ? Number(ValueIn(*status, "TracerPid:")).value_or(0) : 0;
}

bool Catches(pid_t pid, int signal) {
  const auto status = ReadSmallFile(Proc(pid, "status"), kProcFileMaxBytes);
  if (!status || signal < 1 || signal > 64) return false;
  const std::string_view text = ValueIn(*status, "SigCgt:");
  uint64_t caught = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), caught, 16);
  return error == std::errc{} && ((caught >> (signal - 1)) & 1) != 0;
}

std::optional<int> SignalNumber(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, int>, 6> kSignals = {
      {{"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"HUP", SIGHUP}, {"WINCH", SIGWINCH}, {"URG", SIGURG}, {"ALRM", SIGALRM}}};
  if (name.starts_with("SIG")) name.remove_prefix(3);
  const auto number = Number(name);
  for (const auto& [text, value] : kSignals) {
    if (text == name || number == value) return value;
  }
  return std::nullopt;
}

void RestoreState(const StackProcess& process) {
  // The kernel takes a moment to let go of what a dead tracer held.
  char state = StateOf(process.process);
  for (int look = 0; state == 't' && look < kLetGoLooks; ++look) {
    ::poll(nullptr, 0, static_cast<int>(kLetGoLookEvery.count()));
    state = StateOf(process.process);
  }
  const auto status = ReadSmallFile(Proc(process.process.pid, "status"), kProcFileMaxBytes);
  const bool is_stopped = state == 'T' || (status && IsPending(*status, SIGSTOP));
  if (state == '\0' || state == 't' || is_stopped == process.was_stopped) return;
  const int pidfd = OpenPidfd(process.process);
  if (pidfd < 0) return;
  SendSignal(pidfd, process.was_stopped ? SIGSTOP : SIGCONT);
  ::close(pidfd);
}

std::vector<ProcessIdentity> StoppedProcesses(const std::vector<StackTarget>& targets) {
  StackOrder order;
  order.targets = targets;
  std::vector<ProcessIdentity> stopped;
  for (const StackProcess& process : FindStackProcesses(order).processes) {
    if (process.was_stopped) stopped.push_back(process.process);
  }
  return stopped;
}

}  // namespace aimaster::agent
