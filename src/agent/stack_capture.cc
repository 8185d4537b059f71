#include "agent/stack_capture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>
#include <set>
#include <thread>

#include "agent/small_file.h"
#include "agent/stack_limits.h"
#include "agent/stack_processes.h"
#include "agent/stack_run.h"
#include "agent/stack_tools.h"
#include "core/quote.h"
#include "stacks/document.h"

namespace aimaster::agent {
namespace {

using std::chrono::milliseconds;

// A tool mostly waits: for the processes that it reads to stand still, for pages of libraries. So there are several for
// each processor; more only make each of them slower.
size_t Slots() { return std::clamp<size_t>(4 * std::thread::hardware_concurrency(), 8, 64); }

void Pause(milliseconds time) { ::poll(nullptr, 0, static_cast<int>(time.count())); }

int64_t SizeOf(const std::string& path) {
  struct stat64 file{};
  return ::stat64(path.c_str(), &file) == 0 ? file.st_size : -1;
}

std::string ReadFrom(const std::string& path, int64_t offset) {
  std::string text;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  text.resize(1 << 20);
  const ssize_t got = ::pread(fd, text.data(), text.size(), offset);
  text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  ::close(fd);
  return text;
}

class Session {
 public:
  explicit Session(const StackOrder& order)
      : order_(order),
        deadline_(RunClock::now() + order.timeout),
        tools_(order.tool_path),
        found_(FindStackProcesses(order)) {}

  stacks::Capture Take() {
    std::vector<StackProcess>& processes = found_.processes;
    const std::vector<std::vector<pid_t>> stuck = FindStuckThreads(processes);
    for (size_t i = 0; i < processes.size(); ++i) {
      if (stuck[i].empty()) LookInside(processes[i]);
    }
    SortOutLaunchers(processes);
    outcomes_.resize(processes.size());
    for (size_t i = 0; i < processes.size(); ++i) {
      stuck[i].empty() ? Plan(i) : ReadKernel(i, stuck[i]);
    }
    RunTools();
    LetGo();
    for (size_t i = 0; i < processes.size(); ++i) {
      if (outcomes_[i].wants_fallback) FallBack(i);
    }
    return Result();
  }

 private:
  struct Outcome {
    std::deque<ToolCall> calls;  // that have not been tried
    std::vector<stacks::Thread> threads;
    std::string tool;
    std::string trouble;
    bool wants_fallback = false;
  };

  const StackProcess& process(size_t i) const { return found_.processes[i]; }

  void ReadKernel(size_t i, const std::vector<pid_t>& stuck) {
    Outcome& outcome = outcomes_[i];
    outcome.threads = KernelThreads(process(i).process.pid, stuck);
    outcome.tool = "/proc";
    outcome.trouble = "in uninterruptible sleep: no tool attaches to it, and no signal ends it";
  }

  void Plan(size_t i) {
    Outcome& outcome = outcomes_[i];
    if (const pid_t tracer = TracerOf(process(i).process.pid); tracer != 0) {
      outcome.trouble = "another program traces it already: process " + std::to_string(tracer);
      return;
    }
    std::vector<ToolCall> calls = tools_.CallsFor(process(i), order_.tool);
    if (calls.empty()) {
      outcome.trouble = tools_.WhyNone(process(i), order_.tool);
      outcome.wants_fallback = order_.tool != StackTool::kNone;
      return;
    }
    outcome.calls.assign(std::make_move_iterator(calls.begin()), std::make_move_iterator(calls.end()));
    waiting_.push_back(i);
  }

  // Ranks before what they have started: should the time run out, it is those that count.
  void RunTools() {
    std::ranges::sort(waiting_, {}, [this](size_t i) { return std::pair(process(i).is_child, i); });
    const size_t slots = Slots();
    ToolRuns runs;
    while (!waiting_.empty() || runs.running() > 0) {
      while (!waiting_.empty() && runs.running() < slots) {
        const size_t i = waiting_.front();
        waiting_.pop_front();
        Start(runs, i);
      }
      if (runs.running() > 0) TakeIn(runs.Next());
    }
  }

  // Who was held by a tool when it died is set going by the kernel, and stopped a moment later by the signal with which
  // the tool had attached.
  void LetGo() {
    while (!broken_off_.empty() && RunClock::now() - broken_off_at_ < kReleaseQuiet) {
      Pause(kReleaseLookEvery);
      for (const size_t i : broken_off_) RestoreState(process(i));
    }
  }

  void Start(ToolRuns& runs, size_t i) {
    Outcome& outcome = outcomes_[i];
    const auto now = RunClock::now();
    if (now >= deadline_) {
      outcome.trouble = "--stack-timeout ran out before it was its turn";
      outcome.calls.clear();
      return;
    }
    const auto left = deadline_ - now;
    const auto share =
        outcome.calls.size() > 1 ? std::chrono::duration_cast<RunClock::duration>(left * kShareOfFirstTool) : left;
    runs.Start(i, outcome.calls.front().arguments, now + share);
  }

  void TakeIn(ToolResult result) {
    const size_t i = result.id;
    Outcome& outcome = outcomes_[i];
    RestoreState(process(i));
    if (!result.ran || result.status != 0) {
      broken_off_.insert(i);
      broken_off_at_ = RunClock::now();
    }
    const ToolCall call = std::move(outcome.calls.front());
    outcome.calls.pop_front();
    std::vector<stacks::ProcessDump> dumps = call.parse(result.output);
    const auto has_frames = [](const stacks::ProcessDump& dump) {
      return std::ranges::any_of(dump.threads, [](const stacks::Thread& thread) { return !thread.frames.empty(); });
    };
    if (const auto dump = std::ranges::find_if(dumps, has_frames); dump != dumps.end()) {
      outcome.threads = std::move(dump->threads);
      outcome.tool = call.name;
      outcome.trouble.clear();
      outcome.calls.clear();
      return;
    }
    if (StateOf(process(i).process) == '\0') {
      outcome.trouble = "it ended meanwhile";
      outcome.calls.clear();
      return;
    }
    const bool is_refused = IsRefused(result.error_output);
    if (is_refused) {  // to all tools alike
      outcome.trouble = HowToAllow();
      outcome.calls.clear();
    } else if (outcome.trouble.empty()) {  // the first one was the best
      outcome.trouble = WhyItFailed(call.name, result);
    }
    if (!outcome.calls.empty()) {
      waiting_.push_back(i);
    } else {
      outcome.wants_fallback = true;
    }
  }

  std::string WhyItFailed(const std::string& tool, const ToolResult& result) const {
    if (result.timed_out) return tool + " did not answer in time and was killed (--stack-timeout)";
    if (!result.ran) return tool + " could not be run " + LastWords(result.error_output);
    const std::string words = LastWords(result.error_output);
    return tool + " told no stacks" + (words.empty() ? "" : ": " + words);
  }

  // Python writes its own stacks when it gets the signal for which the program has registered faulthandler. It says so
  // in its environment: a handler alone may be for anything.
  void FallBack(size_t i) {
    Outcome& outcome = outcomes_[i];
    const StackProcess& one = process(i);
    const std::string& path = order_.targets[one.target].error_output;
    if (one.fallback_signal.empty() || path.empty() || one.was_stopped) return;
    const std::optional<int> signal = SignalNumber(one.fallback_signal);
    if (!signal || !Catches(one.process.pid, *signal)) {
      outcome.trouble +=
          "; AIMASTER_STACK_SIGNAL names " + stacks::CleanName(one.fallback_signal) + ", for which it has no handler";
      return;
    }
    const int64_t before = SizeOf(path);
    const int pidfd = OpenPidfd(one.process);
    if (before < 0 || pidfd < 0) return;
    SendSignal(pidfd, *signal);
    ::close(pidfd);
    const auto until = std::min(RunClock::now() + kFallbackMax, deadline_ + kHelperSlack / 2);
    auto quiet_since = RunClock::now();
    for (int64_t last = before, now = before; RunClock::now() < until; last = now) {
      Pause(kFallbackLookEvery);
      now = SizeOf(path);
      if (now != last) quiet_since = RunClock::now();
      if (now > before && RunClock::now() - quiet_since >= kFallbackQuiet) break;
    }
    std::vector<stacks::ProcessDump> dumps = stacks::ParseFaulthandler(ReadFrom(path, before));
    if (dumps.empty()) return;
    outcome.threads = std::move(dumps.front().threads);
    outcome.tool = "faulthandler";
  }

  stacks::Capture Result() {
    stacks::CaptureBuilder builder;
    for (size_t i = 0; i < found_.processes.size(); ++i) {
      const StackProcess& one = process(i);
      Outcome& outcome = outcomes_[i];
      if (one.was_stopped) MarkStopped(outcome);
      if (!outcome.threads.empty() && outcome.trouble.empty()) {
        outcome.trouble = tools_.WhyNativeOnly(one, order_.tool, outcome.tool);
      }
      if (outcome.threads.empty() && outcome.trouble == "it ended meanwhile" && one.is_child) continue;
      builder.Add({.node = order_.node,
                   .instance = order_.targets[one.target].instance,
                   .rank = one.rank,
                   .pid = static_cast<uint32_t>(one.process.pid),
                   .is_child = one.is_child,
                   .command = one.command,
                   .tool = outcome.tool,
                   .trouble = Bounded(outcome.trouble)},
                  outcome.threads);
    }
    for (const size_t target : found_.ended) {
      const StackTarget& gone = order_.targets[target];
      builder.Add({.node = order_.node,
                   .instance = gone.instance,
                   .rank = gone.rank,
                   .pid = static_cast<uint32_t>(gone.process.pid),
                   .is_child = false,
                   .command = {},
                   .tool = {},
                   .trouble = "its process had ended"},
                  {});
    }
    stacks::Capture capture = builder.Take();
    capture.processes_cut += found_.left_out;
    capture.number = order_.capture;
    return stacks::Bounded(std::move(capture), stacks::kNodeDocumentMaxBytes);
  }

  // Where it was in its program is where everybody may be; that it does not go on is what matters.
  static void MarkStopped(Outcome& outcome) {
    if (outcome.threads.empty()) outcome.threads.emplace_back().name = "MainThread";
    for (stacks::Thread& thread : outcome.threads) {
      thread.is_waiting = true;
      thread.frames.push_back({.function = "stopped by a signal (SIGSTOP; SIGCONT sets it going)",
                               .file = {},
                               .line = 0,
                               .language = stacks::Language::kKernel});
      stacks::BoundFrames(thread.frames);
    }
  }

  static std::string Bounded(std::string trouble) {
    while (trouble.size() > stacks::kTroubleMaxBytes || (!trouble.empty() && !IsPrintable(trouble))) trouble.pop_back();
    return trouble;
  }

  const StackOrder& order_;
  const RunClock::time_point deadline_;
  const StackTools tools_;
  FoundProcesses found_;
  std::vector<Outcome> outcomes_;
  std::deque<size_t> waiting_;
  std::set<size_t> broken_off_;  // whose tool did not end well
  RunClock::time_point broken_off_at_;
};

std::optional<std::string> ReadAll(int fd, size_t max) {
  std::string text;
  char buffer[16 << 10];
  for (;;) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) return text;
    text.append(buffer, static_cast<size_t>(got));
    if (text.size() > max) return std::nullopt;
  }
}

}  // namespace

stacks::Capture CaptureStacks(const StackOrder& order) { return Session(order).Take(); }

int RunStackHelper() {
  ::signal(SIGPIPE, SIG_IGN);
  const std::optional<std::string> text = ReadAll(STDIN_FILENO, kStackOrderMaxBytes);
  if (!text) return 1;
  const Result<StackOrder> order = ParseStackOrder(*text);
  if (!order) {
    WriteAll(STDERR_FILENO, order.error().message + "\n");
    return 2;
  }
  return WriteAll(STDOUT_FILENO, stacks::FormatDocument(CaptureStacks(*order))) ? 0 : 1;
}

}  // namespace aimaster::agent
