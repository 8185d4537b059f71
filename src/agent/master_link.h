// MasterLink: keeps one connection to whoever is the job's master now. It reads master.json before each dial, and while
// it waits it looks for a new one (a stat, not a watch: watches are a shared, limited thing). What is said over the
// connection is the Conversation's business.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "agent/backoff.h"
#include "agent/timer.h"
#include "core/time.h"
#include "wire/websocket_client.h"

namespace aimaster::agent {

class MasterLink {
 public:
  struct Callbacks {
    std::function<void(bool same_machine)> on_open;
    std::function<void(std::string_view message)> on_message;
    std::function<void(std::string reason)> on_close;  // only after on_open
  };

  MasterLink(boost::asio::io_context& io, std::string job_directory, Callbacks callbacks);

  void Start() { Dial(); }
  void Send(std::string message);
  // Ends this connection; a next one is dialled.
  void HangUp(const std::string& reason);
  // The master has accepted us: the next failure is a first one again.
  void OnWelcome();
  // For good. What is queued still goes out, then `done` is called.
  void Close(std::function<void()> done);
  size_t queued_bytes() const { return client_ ? client_->queued_bytes() : 0; }

 private:
  // Changes whenever master.json is replaced.
  struct FileVersion {
    ino_t inode = 0;
    int64_t time_ns = 0;
    bool operator==(const FileVersion&) const = default;
  };
  FileVersion AddressVersion() const;
  void Dial();
  void OnOpen(bool same_machine);
  void OnMessage(std::string_view message);
  void OnClose(const std::string& reason);
  void Wait(Duration left);
  void WatchSilence(Duration max, const char* what);

  boost::asio::io_context& io_;
  std::string job_directory_;
  Callbacks callbacks_;
  std::unique_ptr<WebSocketClient> client_;
  bool is_open_ = false;
  std::function<void()> closed_for_good_;
  std::string last_failure_;  // said once, not at every try
  FileVersion dialled_;
  Backoff backoff_;
  Timer wait_;
  Timer silence_;
  std::chrono::steady_clock::time_point last_heard_;
  std::mt19937_64 random_{std::random_device{}()};
};

}  // namespace aimaster::agent
