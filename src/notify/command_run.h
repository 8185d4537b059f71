// CommandRun: a sink's command, with the event on its standard input and in its environment. It has a process group of
// its own, which is killed when its time is over, and also when it has ended: what it left behind is not ours to keep.
// Nothing here waits: a command may print without end, hang while it is being started, or not even die.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "notify/request.h"

namespace aimaster::notify {

// Of all that run; for the handler of a signal.
void KillAllCommands();

class CommandRun {
 public:
  CommandRun(const Sink& spec, const CommandInput& input);
  ~CommandRun();
  CommandRun(const CommandRun&) = delete;
  CommandRun& operator=(const CommandRun&) = delete;

  // How it ended; none: it runs. To be asked every few milliseconds: what it prints has to be read, or it would wait.
  std::optional<Outcome> Look();

 private:
  void Start(const Sink& spec, const CommandInput& input);
  void ReadFailure();
  void ReadOutput();
  void KillGroup();
  void Reap(int& status);

  std::chrono::steady_clock::time_point deadline_;
  milliseconds timeout_;
  std::optional<std::chrono::steady_clock::time_point> killed_;  // when its time was over
  std::string name_;
  pid_t pid_ = -1;  // of the command, and of its group; -1: there is none any more
  int output_ = -1;
  int failure_ = -1;  // says why it could not be executed, and ends when it could
  std::string printed_;
  std::string trouble_;
};

}  // namespace aimaster::notify
