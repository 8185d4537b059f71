#include "mpi/daemon.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/argv.h"
#include "mpi/environment.h"

namespace aimaster::mpi {
namespace {

constexpr const char* kShell = "/bin/sh";
constexpr int kCannotExecute = 126;
constexpr std::string_view kPreload = "LD_PRELOAD=";

// hydra_bstrap_proxy is the name in Intel's.
bool StartsHydraProxy(std::string_view command) {
  return command.find("hydra_pmi_proxy") != std::string_view::npos ||
         command.find("hydra_bstrap_proxy") != std::string_view::npos;
}

// Empty where it can't be used: the loader takes blanks and colons for separators, and complains to everybody about a
// file that is not there.
std::string HydraHook() {
  const std::string shim = Variable("AIMASTER_MPI_SHIM");
  const std::string hook = std::filesystem::path(shim).parent_path() / "libaimaster-hydra.so";
  const bool usable =
      !shim.empty() && hook.find_first_of(" :") == std::string::npos && ::access(hook.c_str(), R_OK) == 0;
  return usable ? hook : "";
}

// Everything that allocates is done before the fork.
struct Prepared {
  explicit Prepared(const std::string& command)
      : variables(EnvironmentOf(command)),
        words{"sh", "-c", command},
        environment(ArgvOf(variables)),
        arguments(ArgvOf(words)) {}
  std::vector<std::string> variables, words;
  std::vector<char*> environment, arguments;
};

[[noreturn]] void Become(const Prepared& prepared, pid_t parent, int output, int errors) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kCannotExecute);
  ::setpgid(0, 0);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  ::closefrom(STDERR_FILENO + 1);
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(kShell, prepared.arguments.data(), prepared.environment.data());
  ::_exit(kCannotExecute);
}

}  // namespace

std::vector<std::string> EnvironmentOf(std::string_view command) {
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) environment.emplace_back(*variable);
  const std::string hook = StartsHydraProxy(command) ? HydraHook() : "";
  if (hook.empty()) return environment;
  const std::string before = Variable("LD_PRELOAD");
  std::erase_if(environment, [](const std::string& each) { return each.starts_with(kPreload); });
  environment.push_back(std::string(kPreload) + hook + (before.empty() ? "" : ":" + before));
  environment.push_back("AIMASTER_MPI_PRELOAD_BEFORE=" + before);
  return environment;
}

int BecomeDaemon(const std::string& command) {
  const Prepared prepared(command);
  ::execve(kShell, prepared.arguments.data(), prepared.environment.data());
  std::fprintf(stderr, "aimaster-mpi: cannot run %s: %s\n", kShell, std::strerror(errno));
  return kCannotExecute;
}

Result<Daemon> StartDaemon(const std::string& command) {
  const Prepared prepared(command);
  int output[2], errors[2];
  if (::pipe2(output, O_CLOEXEC) != 0 || ::pipe2(errors, O_CLOEXEC) != 0) {
    return Fail(ErrorKind::kEnvironment, std::string("cannot create a pipe: ") + std::strerror(errno));
  }
  const pid_t self = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) Become(prepared, self, output[1], errors[1]);
  const int error = errno;
  ::close(output[1]);
  ::close(errors[1]);
  if (pid < 0) {
    ::close(output[0]);
    ::close(errors[0]);
    return Fail(ErrorKind::kEnvironment, std::string("cannot create a process: ") + std::strerror(error));
  }
  ::setpgid(pid, pid);
  for (const int end : {output[0], errors[0]}) ::fcntl(end, F_SETFL, O_NONBLOCK);
  return Daemon{pid, output[0], errors[0]};
}

}  // namespace aimaster::mpi
