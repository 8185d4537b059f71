#include "nodes/detached_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include "core/argv.h"

namespace aimaster {
namespace {

class DetachedSpawn {
 public:
  explicit DetachedSpawn(const std::filesystem::path& log) {
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
  int Start(std::vector<std::string>& words, pid_t& pid) {
    const std::vector<char*> argv = ArgvOf(words);
    return posix_spawn(&pid, argv[0], &actions_, &attributes_, argv.data(), environ);
  }

 private:
  posix_spawnattr_t attributes_;
  posix_spawn_file_actions_t actions_;
};

}  // namespace

std::expected<pid_t, int> StartDetached(std::vector<std::string> words, const std::filesystem::path& log) {
  pid_t pid = 0;
  const int failure = DetachedSpawn(log).Start(words, pid);
  if (failure != 0) return std::unexpected(failure);
  return pid;
}

}  // namespace aimaster
