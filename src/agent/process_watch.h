// ProcessWatch holds one process by a pidfd and says once when it has died. No polling, so its end is known in
// microseconds, and no other process can be meant by accident.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>

#include "agent/process_identity.h"

namespace aimaster::agent {

class ProcessWatch {
 public:
  // Nothing when the process is gone. `on_death` is called from the io_context, at most once, never after destruction.
  static std::unique_ptr<ProcessWatch> Open(boost::asio::io_context& io, const ProcessIdentity& process,
                                            std::function<void()> on_death);

  const ProcessIdentity& identity() const { return identity_; }
  bool IsDead() const;  // asked of the kernel, without waiting for the callback
  bool Signal(int signal) { return SendSignal(descriptor_.native_handle(), signal); }
  bool SignalWith(int signal, int value) { return SendSignalWith(descriptor_.native_handle(), signal, value); }

 private:
  ProcessWatch(boost::asio::io_context& io, const ProcessIdentity& process, int pidfd);

  ProcessIdentity identity_;
  mutable boost::asio::posix::stream_descriptor descriptor_;
  std::shared_ptr<bool> watched_ = std::make_shared<bool>(true);
};

}  // namespace aimaster::agent
