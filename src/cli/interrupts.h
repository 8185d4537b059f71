// Interrupts: the signals that a person sends to a command that follows a job, as values read from a descriptor.
//
// A signal that was ignored when we were started stays ignored: `nohup aimaster run`, and a shell script that puts us
// in the background with Ctrl-C switched off, mean it.
#pragma once

#include <optional>

namespace aimaster::cli {

// From its construction on, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 and SIGWINCH no longer act by themselves, and
// SIGPIPE never does. One per process, made before anything that must not be interrupted.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  int descriptor() const { return descriptor_; }  // readable when there is one; −1 when there can't be any
  std::optional<int> Next();                      // a signal's number; none when there is none now

 private:
  int descriptor_ = -1;
};

}  // namespace aimaster::cli
