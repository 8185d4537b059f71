// StackHelper: the agent's side of taking stacks. It starts a process that does it (stack_capture.h) and takes its
// answer. A thread in the agent was rejected: a read of /proc/<pid>/environ of a process that is stuck in the kernel
// may never return, and then neither would the agent's end.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/stack_order.h"
#include "agent/timer.h"
#include "core/error.h"

namespace aimaster::agent {

class StackHelper {
 public:
  // The document, or why there is none. Called once for each start that was not stopped or replaced by another one.
  using Done = std::function<void(Result<std::string> document)>;

  explicit StackHelper(boost::asio::io_context& io);
  ~StackHelper();

  // `program` is that of the agent. What is under way is stopped.
  void Start(const std::string& program, StackOrder order, Done done);
  // Kills it. Whatever its tools held goes on.
  void Stop();

 private:
  struct Talk;

  void ReadOn(const std::shared_ptr<Talk>& talk);
  void End(std::shared_ptr<Talk> talk, Result<std::string> document);
  void Kill();

  boost::asio::io_context& io_;
  std::shared_ptr<Talk> talk_;  // null: none is under way
  Timer deadline_;
};

}  // namespace aimaster::agent
