#include "agent/shim_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include "agent/descriptor_limit.h"

namespace aimaster::agent {

std::expected<ProcessIdentity, int> SpawnShim(const std::string& shim_path, const AttemptDirectory& directory) {
  const std::string log_path = directory.File("shim.log");
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  OriginalDescriptorLimit::FreeDescriptor(files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDWR, 0);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_RDWR, 0);
  ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);

  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t blocked, defaults;
  ::sigemptyset(&blocked);
  for (const int signal : {SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2}) ::sigaddset(&blocked, signal);
  ::sigfillset(&defaults);
  ::posix_spawnattr_setsigmask(&attributes, &blocked);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  std::string path = shim_path;
  std::string argument = directory.path();
  char* const arguments[] = {path.data(), argument.data(), nullptr};
  char* const environment[] = {nullptr};
  pid_t pid = 0;
  int error = 0;
  {
    const OriginalDescriptorLimit limit;
    error = ::posix_spawn(&pid, path.c_str(), &files, &attributes, arguments, environment);
  }
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) return std::unexpected(error);
  // Our child, not yet waited for: its entry exists even if it is dead already.
  const auto stat = ReadStat(pid);
  return ProcessIdentity{pid, stat ? stat->start_ticks : 0};
}

}  // namespace aimaster::agent
