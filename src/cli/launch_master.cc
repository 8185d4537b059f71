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

#include "cli/report.h"
#include "cli/rule_file.h"
#include "cli/text.h"
#include "nodes/detached_process.h"

namespace aimaster::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kSupervisorFileMax{2000};  // until a new supervisor has written who it is
constexpr timespec kSupervisorFilePoll{.tv_sec = 0, .tv_nsec = 1'000'000};
constexpr timespec kStartLockPoll{.tv_sec = 0, .tv_nsec = 20'000'000};

Error CannotStart(const std::string& what, int error) {
  return {ErrorKind::kEnvironment, "cannot start the job's master: " + what + ": " + std::strerror(error)};
}

constexpr std::streamoff kLogTailBytes = 4096;
constexpr std::string_view kSupervisorSays = "aimaster-shim: ";

// "2026-11-30T01:32:08.229Z ": left out, so that the same words are the same however often they are said.
constexpr size_t kTimestampSize = 25;
bool HasTimestamp(std::string_view line) {
  return line.size() > kTimestampSize && line[10] == 'T' && line[23] == 'Z' && line[24] == ' ' && line[0] == '2';
}

// One starter at a time. An fcntl lock goes with its process, so a starter that was killed leaves none behind; one that
// was stopped keeps it, so nobody waits for ever.
class StartLock {
 public:
  explicit StartLock(const fs::path& job_directory) : path_(SupervisorDirectory(job_directory) / "start.lock") {}
  ~StartLock() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  StartLock(const StartLock&) = delete;
  StartLock& operator=(const StartLock&) = delete;

  Status Take(const StartPatience& patience) {
    descriptor_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor_ < 0) return {};  // a disk without room for it: two supervisors at once would only fence each other
    const auto deadline = std::chrono::steady_clock::now() + patience.max;
    struct flock lock{};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    while (fcntl(descriptor_, F_SETLK, &lock) != 0) {
      if (errno != EACCES && errno != EAGAIN && errno != EINTR) {
        return std::unexpected(CannotStart("cannot lock " + InQuotes(path_.string()), errno));
      }
      if (patience.is_interrupted && patience.is_interrupted()) {
        return Fail(ErrorKind::kEnvironment, "interrupted before the job's supervisor could be started");
      }
      if (std::chrono::steady_clock::now() >= deadline) return std::unexpected(IsHeld());
      nanosleep(&kStartLockPoll, nullptr);
    }
    return {};
  }

 private:
  Error IsHeld() const {
    struct flock lock{};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    const bool held = fcntl(descriptor_, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK && lock.l_pid > 0;
    return {ErrorKind::kEnvironment, (held ? "process " + std::to_string(lock.l_pid) : "another process") +
                                         " is starting the job's supervisor and does not get on with it: it holds " +
                                         InQuotes(path_.string()) + "; end it, and try again"};
  }

  const fs::path path_;
  int descriptor_ = -1;
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
    if (HasTimestamp(line)) line.erase(0, kTimestampSize);
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

Result<LookedAfter> EnsureSupervisor(const fs::path& job_directory, const StartPatience& patience) {
  if (const std::optional<ProcessIdentity> live = LiveSupervisor(job_directory)) return LookedAfter{*live, false};
  std::error_code ignored;
  fs::create_directory(SupervisorDirectory(job_directory), ignored);
  StartLock lock(job_directory);
  if (const Status taken = lock.Take(patience); !taken) return std::unexpected(taken.error());
  if (const std::optional<ProcessIdentity> live = LiveSupervisor(job_directory)) return LookedAfter{*live, false};
  // Not being able to is no reason to leave a job alone: it is led by what can be read of its rules.
  if (const Status renewed = RenewRulesOf(job_directory); !renewed) Complain(renewed.error());
  const Result<ProcessIdentity> started = LaunchMaster(job_directory);
  if (!started) return std::unexpected(started.error());
  AwaitSupervisorFile(job_directory, *started);
  return LookedAfter{*started, true};
}

}  // namespace aimaster::cli
