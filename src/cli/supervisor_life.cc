#include "cli/supervisor_life.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>

namespace aimaster::cli {

std::optional<ProcessIdentity> IdentityOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  // The program's name stands in brackets and may hold brackets and blanks.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  std::string state, field;
  fields >> state;
  for (int number = 4; number < 22; ++number) fields >> field;
  ProcessIdentity identity{.pid = pid};
  if (!(fields >> identity.start_ticks) || state == "Z" || state == "X") return std::nullopt;
  return identity;
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
