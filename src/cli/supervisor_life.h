// Is anybody looking after a job? A job's master runs under a supervisor, and the supervisor's file says which process
// that is. The file outlives the process, so the process is known by its number and the time of its start.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace aimaster::cli {

struct ProcessIdentity {
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // field 22 of /proc/<pid>/stat
  bool operator==(const ProcessIdentity&) const = default;
};

// Of a process that runs now, and is no zombie.
std::optional<ProcessIdentity> IdentityOf(pid_t pid);

// "…/<job>/supervisor", the directory that the supervisor writes its file to.
std::filesystem::path SupervisorDirectory(const std::filesystem::path& job_directory);

// The job's supervisor, when it is alive.
std::optional<ProcessIdentity> LiveSupervisor(const std::filesystem::path& job_directory);

// Holds on to one process: readable when it has ended.
class ProcessHandle {
 public:
  ProcessHandle() = default;
  explicit ProcessHandle(const ProcessIdentity& process);
  ProcessHandle(ProcessHandle&& other) noexcept;
  ProcessHandle& operator=(ProcessHandle&& other) noexcept;
  ~ProcessHandle();

  int descriptor() const { return descriptor_; }  // −1: it was gone already
  bool HasEnded() const;

 private:
  int descriptor_ = -1;
};

}  // namespace aimaster::cli
