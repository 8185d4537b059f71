// How long it takes from an order to a running rank, and from a rank's death to the report, with a real agent and real
// shims over loopback; and what an agent with one idle rank holds in memory. `AIMASTER_BIN` names the programs' folder.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "agent/agent_test_support.h"
#include "agent/clock.h"
#include "agent/small_file.h"

namespace aimaster::agent {
namespace {

using enum v1::Report::BodyCase;
constexpr uint32_t kRuns = 100;

void Print(const char* what, std::vector<double> milliseconds) {
  std::ranges::sort(milliseconds);
  std::printf("%-44s median %6.2f ms   90 %% %6.2f ms   worst %6.2f ms   (%zu runs)\n", what,
              milliseconds[milliseconds.size() / 2], milliseconds[milliseconds.size() * 9 / 10], milliseconds.back(),
              milliseconds.size());
}

double MillisecondsSince(int64_t wall_ns) { return static_cast<double>(WallNow().since_epoch.count() - wall_ns) / 1e6; }

TEST_F(AgentTest, Bench) {
  Script("date +%s%N > $JOB/executed.$AIMASTER_ATTEMPT; exec sleep $0");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return master->heartbeats > 0; }));
  std::vector<double> to_exec, to_started, to_exit_file, to_report;
  for (uint32_t attempt = 0; attempt < kRuns; ++attempt) {
    const int64_t ordered = WallNow().since_epoch.count();
    OrderStart(attempt);
    ASSERT_TRUE(Await(kAttemptStarted, attempt));
    to_started.push_back(MillisecondsSince(ordered));
    const std::string file = job_directory + "/executed." + std::to_string(attempt);
    ASSERT_TRUE(master->Until([&] { return ReadSmallFile(file, 100).value_or("").size() > 10; }));
    to_exec.push_back(static_cast<double>(std::stoll(*ReadSmallFile(file, 100)) - ordered) / 1e6);
    const auto rank = static_cast<pid_t>(Find(kAttemptStarted, attempt).attempt_started().rank_pids(0));
    const int64_t killed = WallNow().since_epoch.count();
    ::kill(rank, SIGKILL);
    ASSERT_TRUE(Await(kRankExited, attempt));
    to_report.push_back(MillisecondsSince(killed));
    to_exit_file.push_back(static_cast<double>(Exit(attempt).exit_time_ns() - killed) / 1e6);
    ASSERT_TRUE(Await(kAttemptEnded, attempt));
  }
  Print("order -> rank executes its first command", to_exec);
  Print("order -> AttemptStarted at the master", to_started);
  Print("SIGKILL of a rank -> reaped by its shim", to_exit_file);
  Print("SIGKILL of a rank -> RankExited at the master", to_report);

  OrderStart(kRuns);
  ASSERT_TRUE(Await(kAttemptStarted, kRuns));
  const auto shim = Find(kAttemptStarted, kRuns).attempt_started().shim_pid();
  for (const auto& [name, pid] : {std::pair("agent", static_cast<int64_t>(agent)), std::pair("shim", shim)}) {
    const std::string memory = ReadSmallFile("/proc/" + std::to_string(pid) + "/smaps_rollup", kMebibyte).value_or("");
    for (const char* field : {"\nRss:", "\nPss:"}) {
      const size_t found = memory.find(field);
      const std::string line =
          found == std::string::npos ? "" : memory.substr(found + 1, memory.find('\n', found + 1) - found - 1);
      std::printf("%s  %s\n", name, line.c_str());
    }
  }
}

}  // namespace
}  // namespace aimaster::agent
