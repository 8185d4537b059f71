#include "cli/launch_master.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <expected>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/text.h"
#include "nodes/detached_process.h"

namespace aimaster::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kSupervisorFileMax{2000};  // until a new supervisor has written who it is
constexpr timespec kSupervisorFilePoll{.tv_sec = 0, .tv_nsec = 1'000'000};

Error CannotStart(const std::string& what, int error) {
  return {ErrorKind::kEnvironment, "cannot start the job's master: " + what + ": " + std::strerror(error)};
}

constexpr std::streamoff kLogTailBytes = 4096;
constexpr std::string_view kSupervisorSays = "aimaster-shim: ";

// One starter at a time. An fcntl lock goes with its process, so a starter that was killed leaves none behind.
class StartLock {
 public:
  explicit StartLock(const fs::path& job_directory)
      : descriptor_(
            open((SupervisorDirectory(job_directory) / "start.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    struct flock lock{};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    while (descriptor_ >= 0 && fcntl(descriptor_, F_SETLKW, &lock) != 0 && errno == EINTR) {
    }
  }
  ~StartLock() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  StartLock(const StartLock&) = delete;
  StartLock& operator=(const StartLock&) = delete;

 private:
  int descriptor_;
};

// Until then nobody else could see that the job is looked after.
void AwaitSupervisorFile(const fs::path& job_directory, const ProcessIdentity& supervisor) {
  const auto deadline = std::chrono::steady_clock::now() + kSupervisorFileMax;
  while (std::chrono::steady_clock::now() < deadline && LiveSupervisor(job_directory) != supervisor &&
         IdentityOf(supervisor.pid)) {
    nanosleep(&kSupervisorFilePoll, nullptr);
  }
}

}  // namespace

fs::path MasterLog(const fs::path& job_directory) { return job_directory / "aimaster.log"; }

std::string LastLogLine(const fs::path& job_directory) {
  std::ifstream file(MasterLog(job_directory), std::ios::binary);
  file.seekg(0, std::ios::end);
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(0, size - kLogTailBytes));
  std::string text((std::istreambuf_iterator<char>(file)), {});
  std::istringstream lines(text);
  std::string last, masters;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(kSupervisorSays)) masters = line;
    last = std::move(line);
  }
  return OneLine(masters.empty() ? last : masters);
}

Result<ProcessIdentity> LaunchMaster(const fs::path& job_directory) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return std::unexpected(CannotStart("/proc/self/exe can't be read", error.value()));
  const fs::path shim = program.parent_path() / "aimaster-shim";
  const fs::path run_directory = SupervisorDirectory(job_directory);
  if (mkdir(run_directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return std::unexpected(CannotStart("cannot make " + InQuotes(run_directory.string()), errno));
  }
  const std::expected<pid_t, int> pid =
      StartDetached({shim, "--supervise", "--name", job_directory.filename(), "--run-dir", run_directory, "--", program,
                     "master", "--job-dir", job_directory},
                    MasterLog(job_directory));
  if (!pid) return std::unexpected(CannotStart(InQuotes(shim.string()), pid.error()));
  // A process that has ended already has no identity; its number alone says then that it is gone.
  return IdentityOf(*pid).value_or(ProcessIdentity{.pid = *pid});
}

Result<LookedAfter> EnsureMaster(const fs::path& job_directory) {
  std::error_code ignored;
  fs::create_directory(SupervisorDirectory(job_directory), ignored);
  const StartLock lock(job_directory);
  if (const std::optional<ProcessIdentity> live = LiveSupervisor(job_directory)) return LookedAfter{*live, false};
  const Result<ProcessIdentity> started = LaunchMaster(job_directory);
  if (!started) return std::unexpected(started.error());
  AwaitSupervisorFile(job_directory, *started);
  return LookedAfter{*started, true};
}

}  // namespace aimaster::cli
