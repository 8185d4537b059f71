// ToolRuns: programs that run at the same time, each with a deadline and a bound on what it may print. One that hangs
// is killed; nothing that it does, or doesn't do, makes us wait longer.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <list>
#include <string>
#include <vector>

namespace aimaster::agent {

using RunClock = std::chrono::steady_clock;

struct ToolResult {
  size_t id = 0;  // as it was started
  std::string output;
  std::string error_output;
  bool ran = false;        // it was executed
  bool timed_out = false;  // and killed for it
  int status = 0;          // as waitpid says it
};

// One thread, which must have no other children that it waits for.
class ToolRuns {
 public:
  ToolRuns() = default;
  ~ToolRuns();  // kills what still runs
  ToolRuns(const ToolRuns&) = delete;
  ToolRuns& operator=(const ToolRuns&) = delete;

  // A clean environment, no standard input; it dies with us.
  void Start(size_t id, const std::vector<std::string>& arguments, RunClock::time_point deadline);
  size_t running() const { return runs_.size(); }
  // Waits until one has ended, and takes it out. There must be one.
  ToolResult Next();

 private:
  struct Run {
    ToolResult result;
    pid_t pid = -1;
    int pidfd = -1;
    int output = -1;
    int error = -1;
    RunClock::time_point deadline;
    bool is_killed = false;
  };
  static bool Read(int& fd, std::string& into, size_t max);
  static void Kill(Run& run);
  ToolResult Finish(std::list<Run>::iterator run);

  std::list<Run> runs_;
};

}  // namespace aimaster::agent
