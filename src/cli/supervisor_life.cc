#include "cli/supervisor_life.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "journal/job_directory.h"

namespace aimaster::cli {

std::optional<ProcessIdentity> IdentityOf(pid_t pid) {
  const uint64_t start_ticks = ProcessStartTicks(pid);
  if (start_ticks == 0) return std::nullopt;
  return ProcessIdentity{.pid = pid, .start_ticks = start_ticks};
}

std::filesystem::path SupervisorDirectory(const std::filesystem::path& job_directory) {
  return job_directory / "supervisor";
}

std::optional<ProcessIdentity> LiveSupervisor(const std::filesystem::path& job_directory) {
  std::ifstream file(SupervisorDirectory(job_directory) / "supervisor.json");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const nlohmann::json members = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!members.is_object() || !members.contains("pid") || !members.contains("start_ticks")) return std::nullopt;
  if (!members["pid"].is_number_unsigned() || !members["start_ticks"].is_number_unsigned()) return std::nullopt;
  const ProcessIdentity written{members["pid"].get<pid_t>(), members["start_ticks"].get<uint64_t>()};
  const std::optional<ProcessIdentity> now = IdentityOf(written.pid);
  return now == written ? now : std::nullopt;
}

ProcessHandle::ProcessHandle(const ProcessIdentity& process) {
  descriptor_ = static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0));
  // Asked again after opening: the number may have been given to somebody else before.
  if (descriptor_ >= 0 && IdentityOf(process.pid) != process) {
    close(descriptor_);
    descriptor_ = -1;
  }
}

ProcessHandle::ProcessHandle(ProcessHandle&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

ProcessHandle& ProcessHandle::operator=(ProcessHandle&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

ProcessHandle::~ProcessHandle() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool ProcessHandle::HasEnded() const {
  pollfd poll_descriptor{.fd = descriptor_, .events = POLLIN, .revents = 0};
  return descriptor_ < 0 || poll(&poll_descriptor, 1, 0) == 1;
}

}  // namespace aimaster::cli
