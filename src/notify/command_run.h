// CommandRun: a sink's command, with the event on its standard input and in its environment. It has a process group of
// its own, which is killed when its time is over, and also when it has ended: what it left behind is not ours to keep.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "notify/request.h"

namespace aimaster::notify {

class CommandRun {
 public:
  CommandRun(const Sink& spec, const CommandInput& input);
  ~CommandRun();
  CommandRun(const CommandRun&) = delete;
  CommandRun& operator=(const CommandRun&) = delete;

  // How it ended; none: it runs. To be asked every few milliseconds: what it prints has to be read, or it would wait.
  std::optional<Outcome> Look();

 private:
  void ReadOutput();
  void KillGroup();

  std::chrono::steady_clock::time_point deadline_;
  milliseconds timeout_;
  pid_t pid_ = -1;
  int output_ = -1;
  std::string printed_;
  std::string trouble_;
};

}  // namespace aimaster::notify
