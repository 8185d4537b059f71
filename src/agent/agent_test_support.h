// One agent as a real process, its shims and ranks as real processes, and a test in the master's place.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "agent/attempt_files.h"
#include "agent/test_master.h"

namespace aimaster::agent {

class AgentTest : public testing::Test {
 protected:
  // Of this process: agents look for their processes on the whole machine, where somebody else may run these tests too.
  static const std::string kJobId;

  void SetUp() override;
  void TearDown() override;

  // The job's command, in a shell.
  void Script(const std::string& script);
  void StartMaster(uint64_t epoch = 1) { master = std::make_unique<TestMaster>(job_directory, job, epoch); }
  // `prefix`: a program that executes the agent in its place, with its arguments.
  void StartAgent(std::vector<std::string> more_arguments = {}, std::vector<std::string> prefix = {});
  void StartBoth() {
    StartMaster();
    StartAgent();
  }
  void KillAgent(int signal);
  // Its exit code; −1 when it does not end, or is killed.
  int WaitForAgent();

  void OrderStart(uint32_t attempt = 0, uint32_t ranks = 1, uint32_t round = 0);
  void OrderStop(uint32_t attempt = 0, bool at_once = false);
  bool Has(v1::Report::BodyCase kind, uint32_t attempt = 0) { return master->Find(kind, attempt) != nullptr; }
  [[nodiscard]] bool Await(v1::Report::BodyCase kind, uint32_t attempt = 0) {
    return master->Until([&] { return Has(kind, attempt); });
  }
  // Waits for a file that a rank writes.
  [[nodiscard]] bool AwaitFile(const std::string& path);

  AttemptDirectory Directory(uint32_t attempt = 0) const;
  pid_t ShimPid() const { return static_cast<pid_t>(Find(v1::Report::kAttemptStarted).attempt_started().shim_pid()); }
  pid_t RankPid(int index = 0) const {
    return static_cast<pid_t>(Find(v1::Report::kAttemptStarted).attempt_started().rank_pids(index));
  }
  const v1::Report& Find(v1::Report::BodyCase kind, uint32_t attempt = 0) const;
  const v1::RankExited& Exit(uint32_t attempt = 0) const {
    return Find(v1::Report::kRankExited, attempt).rank_exited();
  }
  const v1::AttemptEnded& End(uint32_t attempt = 0) const {
    return Find(v1::Report::kAttemptEnded, attempt).attempt_ended();
  }
  // Processes that have this word in their command line.
  static std::vector<pid_t> FindProcesses(const std::string& word);

  std::string folder;
  std::string job_directory;  // in it; named like the job
  std::string word;           // unique to this test: ranks that carry it are found whatever they do
  v1::JobConfig job;
  std::unique_ptr<TestMaster> master;
  pid_t agent = 0;
};

}  // namespace aimaster::agent
