#include "cli/interrupts.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace aimaster::cli {

Interrupts::Interrupts() {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a file size limit is an error of write(2), not our end
  sigset_t watched;
  sigemptyset(&watched);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH}) {
    struct sigaction action{};
    sigaction(number, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&watched, number);
  }
  sigprocmask(SIG_BLOCK, &watched, nullptr);
  descriptor_ = signalfd(-1, &watched, SFD_NONBLOCK | SFD_CLOEXEC);
}

Interrupts::~Interrupts() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::optional<int> Interrupts::Next() {
  signalfd_siginfo info{};
  if (descriptor_ < 0 || read(descriptor_, &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace aimaster::cli
