// StackHelper: the agent's side of taking stacks. It starts a process that does it (stack_capture.h) and takes its
// answer. A thread in the agent was rejected: a read of /proc/<pid>/environ of a process that is stuck in the kernel
// may never return, and then neither would the agent's end.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/stack_order.h"
#include "agent/stack_release.h"
#include "agent/timer.h"
#include "core/error.h"

namespace aimaster::agent {

class StackHelper {
 public:
  // The document, or why there is none. Called once for each start that was not stopped or replaced by another one.
  using Done = std::function<void(Result<std::string> document)>;

  explicit StackHelper(boost::asio::io_context& io);
  ~StackHelper();  // waits, for kReleaseMax at most, until what the tools held goes on

  // `program` is that of the agent. What is under way is stopped, and the new one begins when nothing of it is left.
  void Start(std::string program, StackOrder order, Done done);
  // Whether this capture's answer is still to come.
  bool IsTaking(uint32_t capture) const;
  // Kills it. Whatever its tools held goes on soon.
  void Stop();

 private:
  struct Talk;
  struct Waiting {
    std::string program;
    StackOrder order;
    Done done;
  };

  void Begin(const std::string& program, StackOrder order, Done done);
  void ReadOn(const std::shared_ptr<Talk>& talk);
  void End(std::shared_ptr<Talk> talk, Result<std::string> document);
  void Release();

  boost::asio::io_context& io_;
  std::shared_ptr<Talk> talk_;           // null: none is under way
  std::optional<StackRelease> release_;  // of the one before
  std::optional<Waiting> waiting_;       // for the end of the release
  Timer deadline_, release_timer_;
};

}  // namespace aimaster::agent
