// Sender: letters on their way, whatever the sink is: by network or by a command. Several at a time, one of each sink.
#pragma once

#include <poll.h>

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "notify/command_run.h"
#include "notify/exchange.h"
#include "notify/request.h"

namespace aimaster::notify {

class Sender {
 public:
  // `sink` comes back with the outcome.
  void Start(size_t sink, const Sink& spec, const Letter& letter, Wall now);
  // Those that have ended. No answer of theirs holds a secret.
  std::vector<std::pair<size_t, Outcome>> Perform();
  void Wait(std::span<pollfd> descriptors, milliseconds at_most);
  bool is_idle() const { return under_way_.empty(); }

 private:
  struct UnderWay {
    Revealed revealed;
    std::unique_ptr<CommandRun> command;  // none: the exchange has it
    std::optional<Outcome> at_once;       // it could not even be sent
  };
  Exchange exchange_;
  std::map<size_t, UnderWay> under_way_;
};

}  // namespace aimaster::notify
