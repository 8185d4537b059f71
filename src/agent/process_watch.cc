#include "agent/process_watch.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "agent/descriptor_limit.h"
#include "agent/limits.h"

namespace aimaster::agent {

ProcessWatch::ProcessWatch(boost::asio::io_context& io, const ProcessIdentity& process, std::function<void()> on_death)
    : identity_(process), on_death_(std::move(on_death)), timer_(io) {}

std::unique_ptr<ProcessWatch> ProcessWatch::Open(boost::asio::io_context& io, const ProcessIdentity& process,
                                                 std::function<void()> on_death) {
  const int pidfd = OpenPidfd(process);
  if (pidfd < 0 && (errno == ESRCH || agent::IsDead(process))) return nullptr;
  std::unique_ptr<ProcessWatch> watch(new ProcessWatch(io, process, std::move(on_death)));
  if (pidfd >= 0 && !IsAmongTheLast(pidfd)) {
    watch->Hold(io, pidfd);
  } else {
    if (pidfd >= 0) ::close(pidfd);
    watch->LookNowAndThen();
  }
  return watch;
}

void ProcessWatch::Hold(boost::asio::io_context& io, int pidfd) {
  descriptor_.emplace(io, pidfd);
  descriptor_->async_wait(
      boost::asio::posix::stream_descriptor::wait_read,
      [watched = std::weak_ptr<bool>(watched_), on_death = on_death_](boost::system::error_code error) {
        if (error || watched.expired()) return;
        on_death();
      });
}

void ProcessWatch::LookNowAndThen() {
  timer_.After(kProcessPoll, [this] {
    if (agent::IsDead(identity_)) {
      const std::function<void()> on_death = on_death_;  // it may destroy us
      on_death();
    } else {
      LookNowAndThen();
    }
  });
}

bool ProcessWatch::IsDead() const {
  if (!descriptor_) return agent::IsDead(identity_);
  pollfd poll_one{descriptor_->native_handle(), POLLIN, 0};
  return ::poll(&poll_one, 1, 0) == 1 && (poll_one.revents & POLLIN) != 0;
}

bool ProcessWatch::WithPidfd(const std::function<bool(int)>& call) const {
  if (descriptor_) return call(descriptor_->native_handle());
  const int pidfd = OpenPidfd(identity_);
  if (pidfd < 0) return false;
  const bool done = call(pidfd);
  ::close(pidfd);
  return done;
}

}  // namespace aimaster::agent
