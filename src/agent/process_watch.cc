#include "agent/process_watch.h"

#include <poll.h>

namespace aimaster::agent {

ProcessWatch::ProcessWatch(boost::asio::io_context& io, const ProcessIdentity& process, int pidfd)
    : identity_(process), descriptor_(io, pidfd) {}

std::unique_ptr<ProcessWatch> ProcessWatch::Open(boost::asio::io_context& io, const ProcessIdentity& process,
                                                 std::function<void()> on_death) {
  const int pidfd = OpenPidfd(process);
  if (pidfd < 0) return nullptr;
  std::unique_ptr<ProcessWatch> watch(new ProcessWatch(io, process, pidfd));
  watch->descriptor_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                                [watched = std::weak_ptr<bool>(watch->watched_),
                                 on_death = std::move(on_death)](boost::system::error_code error) {
                                  if (error || watched.expired()) return;
                                  on_death();
                                });
  return watch;
}

bool ProcessWatch::IsDead() const {
  pollfd poll_one{descriptor_.native_handle(), POLLIN, 0};
  return ::poll(&poll_one, 1, 0) == 1 && (poll_one.revents & POLLIN) != 0;
}

}  // namespace aimaster::agent
