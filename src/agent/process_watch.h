// ProcessWatch holds one process and says once when it has died. By a pidfd where we can have one, so that its end is
// known in microseconds and no other process can be meant by accident. Where descriptors have run out, by looking now
// and then: later, but no less surely. To give up on the process instead was rejected: it lives, and what lives
// unwatched is worse than what is heard of late.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <optional>

#include "agent/process_identity.h"
#include "agent/timer.h"

namespace aimaster::agent {

class ProcessWatch {
 public:
  // Nothing when the process is gone. `on_death` is called from the io_context, at most once, never after destruction.
  static std::unique_ptr<ProcessWatch> Open(boost::asio::io_context& io, const ProcessIdentity& process,
                                            std::function<void()> on_death);

  const ProcessIdentity& identity() const { return identity_; }
  bool IsDead() const;  // asked of the kernel, without waiting for the callback
  bool Signal(int signal) {
    return WithPidfd([signal](int pidfd) { return SendSignal(pidfd, signal); });
  }
  bool SignalWith(int signal, int value) {
    return WithPidfd([signal, value](int pidfd) { return SendSignalWith(pidfd, signal, value); });
  }

 private:
  ProcessWatch(boost::asio::io_context& io, const ProcessIdentity& process, std::function<void()> on_death);

  void Hold(boost::asio::io_context& io, int pidfd);
  void LookNowAndThen();
  bool WithPidfd(const std::function<bool(int)>& call) const;

  ProcessIdentity identity_;
  std::function<void()> on_death_;
  mutable std::optional<boost::asio::posix::stream_descriptor> descriptor_;
  Timer timer_;  // without a descriptor
  std::shared_ptr<bool> watched_ = std::make_shared<bool>(true);
};

}  // namespace aimaster::agent
