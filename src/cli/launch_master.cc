#include "cli/launch_master.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <system_error>
#include <vector>

#include "cli/text.h"

namespace aimaster::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kSupervisorFileMax{2000};  // until a new supervisor has written who it is
constexpr timespec kSupervisorFilePoll{.tv_sec = 0, .tv_nsec = 1'000'000};

Error CannotStart(const std::string& what, int error) {
  return {ErrorKind::kEnvironment, "cannot start the job's master: " + what + ": " + std::strerror(error)};
}

// What the supervisor gets of us: nothing but standard descriptors and our environment. A descriptor that a script had
// open, a closed signal, a working directory would otherwise be held for as long as the job lives.
class DetachedSpawn {
 public:
  explicit DetachedSpawn(const fs::path& log) {
    posix_spawnattr_init(&attributes_);
    posix_spawn_file_actions_init(&actions_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, log.c_str(), O_WRONLY | O_APPEND | O_CREAT, 0600);
    posix_spawn_file_actions_adddup2(&actions_, STDOUT_FILENO, STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
    posix_spawn_file_actions_addchdir_np(&actions_, "/");
  }
  ~DetachedSpawn() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  DetachedSpawn(const DetachedSpawn&) = delete;
  DetachedSpawn& operator=(const DetachedSpawn&) = delete;

  // 0 and the process, or an errno.
  int Start(std::vector<std::string> words, pid_t& pid) {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    return posix_spawn(&pid, argv[0], &actions_, &attributes_, argv.data(), environ);
  }

 private:
  posix_spawnattr_t attributes_;
  posix_spawn_file_actions_t actions_;
};

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

Result<ProcessIdentity> LaunchMaster(const fs::path& job_directory) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return std::unexpected(CannotStart("/proc/self/exe can't be read", error.value()));
  const fs::path shim = program.parent_path() / "aimaster-shim";
  const fs::path run_directory = SupervisorDirectory(job_directory);
  if (mkdir(run_directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return std::unexpected(CannotStart("cannot make " + InQuotes(run_directory.string()), errno));
  }
  DetachedSpawn spawn(MasterLog(job_directory));
  pid_t pid = 0;
  const int failure = spawn.Start({shim, "--supervise", "--name", job_directory.filename(), "--run-dir", run_directory,
                                   "--", program, "master", "--job-dir", job_directory},
                                  pid);
  if (failure != 0) return std::unexpected(CannotStart(InQuotes(shim.string()), failure));
  // A process that has ended already has no identity; its number alone says then that it is gone.
  return IdentityOf(pid).value_or(ProcessIdentity{.pid = pid});
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
