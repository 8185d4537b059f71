// Timer: calls back once, later, and never after it was cancelled, set again or destroyed. (A bare asio timer may have
// its callback already queued at that moment; callers here want to forget about that.)
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>

namespace aimaster::agent {

class Timer {
 public:
  explicit Timer(boost::asio::io_context& io) : timer_(io) {}

  void After(std::chrono::nanoseconds delay, std::function<void()> call) {
    set_ = std::make_shared<bool>(true);
    timer_.expires_after(delay);
    timer_.async_wait([set = std::weak_ptr<bool>(set_), call = std::move(call)](boost::system::error_code error) {
      if (error || set.expired()) return;
      // The callback may destroy or set this timer; it lives in the handler, not in the timer.
      call();
    });
  }
  void Cancel() {
    set_.reset();
    timer_.cancel();
  }

 private:
  boost::asio::steady_timer timer_;
  std::shared_ptr<bool> set_;
};

}  // namespace aimaster::agent
