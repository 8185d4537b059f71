#include "agent/agent_test_support.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>

#include "agent/limits.h"
#include "core/clocks.h"

namespace aimaster::agent {

const std::string AgentTest::kJobId = "dlcagent" + std::to_string(100'000'000 + ::getpid()).substr(1);

void AgentTest::SetUp() {
  char name[] = "/tmp/agent_test.XXXXXX";
  folder = ::mkdtemp(name);
  job_directory = folder + "/" + kJobId;
  ASSERT_TRUE(MakeDirectories(job_directory));
  word = "76" + std::to_string(::getpid()) + std::to_string(MonotonicNow().since_origin.count() % 1'000'000);
  ASSERT_TRUE(WriteSmallFile(job_directory + "/token", TestMaster::kToken));
  job.set_job_id(kJobId);
  job.set_working_directory(job_directory);
  (*job.mutable_environment())["PATH"] = "/usr/bin:/bin";
  (*job.mutable_environment())["JOB"] = job_directory;
  job.set_stop_grace_ms(2000);
  job.set_orphan_timeout_ms(60'000);
  Script("true");
}

void AgentTest::TearDown() {
  if (agent != 0) {
    // Its ranks first: the job is over, and the agent sees to it.
    v1::Command shutdown;
    shutdown.mutable_shutdown();
    if (master) master->Order(shutdown);
    if (master) {
      EXPECT_EQ(WaitForAgent(), 0) << "the agent did not end well";
    }
    if (agent != 0) KillAgent(SIGKILL);
  }
  master.reset();
  if (!word.empty()) {
    const auto left = FindProcesses(word);
    EXPECT_TRUE(left.empty()) << left.size() << " processes are left";
    for (const pid_t pid : left) ::kill(pid, SIGKILL);
  }
  if (HasFailure()) {
    std::ifstream log(job_directory + "/agent.log");
    std::cerr << "--- the agent's log\n" << log.rdbuf() << "---\n";
  }
  std::error_code error;
  std::filesystem::remove_all(folder, error);
}

void AgentTest::Script(const std::string& script) {
  job.clear_command();
  for (const std::string& argument : {std::string("sh"), std::string("-c"), script, word}) job.add_command(argument);
}

void AgentTest::StartAgent(std::vector<std::string> more_arguments, std::vector<std::string> prefix) {
  const char* const programs = std::getenv("AIMASTER_BIN");
  ASSERT_NE(programs, nullptr) << "AIMASTER_BIN has to name the folder of the programs";
  const std::string path = std::string(programs) + "/aimaster-agent";
  const std::string log = job_directory + "/agent.log";
  std::vector<std::string> arguments = std::move(prefix);
  for (const std::string& argument : {path, std::string("--job-dir"), job_directory, std::string("--node"),
                                      std::string("0"), std::string("--node-name"), std::string("node-0")}) {
    arguments.push_back(argument);
  }
  arguments.insert(arguments.end(), more_arguments.begin(), more_arguments.end());
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, 2, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ASSERT_EQ(::posix_spawnp(&agent, arguments.front().c_str(), &files, nullptr, pointers.data(), environ), 0);
  ::posix_spawn_file_actions_destroy(&files);
}

void AgentTest::KillAgent(int signal) {
  ::kill(agent, signal);
  ::waitpid(std::exchange(agent, 0), nullptr, 0);
}

int AgentTest::WaitForAgent() {
  int status = 0;
  const auto has_ended = [&] { return ::waitpid(agent, &status, WNOHANG) == agent; };
  bool ended = false;
  if (master) {
    ended = master->Until(has_ended);
  } else {
    for (int i = 0; i < 4000 && !ended; ++i) {
      ended = has_ended();
      if (!ended) ::usleep(5000);
    }
  }
  if (!ended) return -1;
  agent = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void AgentTest::OrderStart(uint32_t attempt, uint32_t ranks, uint32_t round) {
  v1::Command command;
  v1::StartInstance& start = *command.mutable_start_instance();
  start.mutable_id()->set_attempt(attempt);
  start.set_instance_name(kJobId + "-worker-0");
  start.set_round(round);
  for (uint32_t i = 0; i < ranks; ++i) {
    v1::RankLaunch& rank = *start.add_ranks();
    rank.set_rank(i);
    rank.set_local(i);
    (*rank.mutable_environment())["RANK"] = std::to_string(i);
    (*rank.mutable_environment())["AIMASTER_NODE"] = "node-0";
  }
  start.set_holds_master_port(true);
  master->Order(command);
}

void AgentTest::OrderStop(uint32_t attempt, bool at_once) {
  v1::Command command;
  command.mutable_stop_instance()->mutable_id()->set_attempt(attempt);
  command.mutable_stop_instance()->set_at_once(at_once);
  command.mutable_stop_instance()->set_instance_name(kJobId + "-worker-0");
  master->Order(command);
}

bool AgentTest::AwaitFile(const std::string& path) {
  return master->Until([&] { return FileExists(path); });
}

AttemptDirectory AgentTest::Directory(uint32_t attempt) const {
  return AttemptDirectory(job_directory + "/nodes/node-0/" + kJobId + "-worker-0/" + std::to_string(attempt));
}

const v1::Report& AgentTest::Find(v1::Report::BodyCase kind, uint32_t attempt) const {
  static const v1::Report none;
  const v1::Report* const found = master->Find(kind, attempt);
  EXPECT_NE(found, nullptr) << "there is no report of kind " << kind;
  return found != nullptr ? *found : none;
}

std::vector<pid_t> AgentTest::FindProcesses(const std::string& word) {
  std::vector<pid_t> found;
  DIR* const directory = ::opendir("/proc");
  while (const dirent* entry = ::readdir(directory)) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid <= 0 || pid == ::getpid()) continue;
    const auto line = ReadSmallFile("/proc/" + std::to_string(pid) + "/cmdline", kSmallFileMaxBytes);
    const auto stat = ReadStat(pid);
    if (line && stat && !IsDeadState(stat->state) && line->find(word) != std::string::npos) found.push_back(pid);
  }
  ::closedir(directory);
  return found;
}

}  // namespace aimaster::agent
