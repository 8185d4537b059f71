// Exchange: messages on their way over the network, several at a time, on one thread. libcurl speaks HTTP and SMTP,
// over TLS or not; what is ours is the limits, and words about what went wrong.
#pragma once

#include <poll.h>

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "notify/request.h"

namespace aimaster::notify {

class Exchange {
 public:
  Exchange();
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // `sink` is only a number that comes back with the outcome; one message of each at a time. No answer shows what is
  // revealed.
  void Post(size_t sink, const Sink& spec, const Revealed& revealed, const HttpRequest& request);
  void Mail(size_t sink, const Sink& spec, const Revealed& revealed, std::string mail);

  // Goes on with all of them, without waiting. Those that have ended.
  std::vector<std::pair<size_t, Outcome>> Perform();
  // Until one of them can go on, a descriptor is ready (its revents say so), or the time is over.
  void Wait(std::span<pollfd> descriptors, milliseconds at_most);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace aimaster::notify
