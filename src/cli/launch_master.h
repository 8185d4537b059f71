// Starts a job's master: a supervisor in a session of its own, which starts the master and starts it again whenever it
// dies. From then on the job needs neither us nor our terminal.
//
//   aimaster run ─▶ aimaster-shim --supervise ─▶ aimaster master --job-dir DIR
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "cli/supervisor_life.h"
#include "core/error.h"

namespace aimaster::cli {

// The supervisor, running. Its output and the master's are appended to aimaster.log in the job directory.
Result<ProcessIdentity> LaunchMaster(const std::filesystem::path& job_directory);

// How long somebody waits for another one who is just starting the job's supervisor.
struct StartPatience {
  std::chrono::milliseconds max{5000};
  std::function<bool()> is_interrupted;  // looked at again and again
};

// The supervisor that looks after the job, started when there was none. Of two that call it at once, one starts it.
struct LookedAfter {
  ProcessIdentity supervisor;
  bool started = false;
};
Result<LookedAfter> EnsureSupervisor(const std::filesystem::path& job_directory, const StartPatience& patience);

std::filesystem::path MasterLog(const std::filesystem::path& job_directory);
// What the master said last, which is why it could not run where it could not; its supervisor's last word where the
// master said nothing; else empty.
std::string LastLogLine(const std::filesystem::path& job_directory);

}  // namespace aimaster::cli
