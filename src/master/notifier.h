// Notifier: the master's side of the courier (notify/courier.h): starts it, tells it when there is something to see,
// has marked in the journal what it has done, and starts it again when it dies. Nothing here waits for anything: a sink
// that is away costs the master one process that sleeps.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "journal/job_directory.h"
#include "journal/outbox.h"

namespace aimaster {

// On the thread of `io`.
class Notifier {
 public:
  struct Options {
    std::filesystem::path program;  // aimaster-notify
    JobDirectory job_directory;
  };
  struct Callbacks {
    // To be made durable; of what was delivered or given up: then Marked, or, when it can't be now, tried again later.
    std::function<void(OutboxMark mark)> on_mark;
    std::function<void(const std::string& line)> on_log;
  };
  // Whether the job wants notifications at all.
  static bool IsWanted(const JobDirectory& job_directory);

  Notifier(boost::asio::io_context& io, Options options, Callbacks callbacks);
  ~Notifier();

  void Start();
  // Something was appended to the journal.
  void Look();
  void Marked(const std::string& sink);
  // Sends what waits, for as long as the plan allows, and then calls `done`, in any case and once.
  void Drain(std::function<void()> done);

 private:
  // What belongs to one life of the courier. Late completions of a former one find that it is not theirs.
  struct Life {
    explicit Life(boost::asio::io_context& io) : pidfd(io), input(io), output(io) {}
    pid_t pid = -1;
    boost::asio::posix::stream_descriptor pidfd, input, output;
    std::string heard;
    std::string to_say;
    bool is_writing = false;
    bool has_ended = false, has_said_all = false;
  };

  void Spawn();
  void Say(std::string_view line);
  void Write(const std::shared_ptr<Life>& life);
  void Read(const std::shared_ptr<Life>& life);
  void Hear(std::string_view line);
  void OnEnd();
  void StartAgain();
  void Finish();

  boost::asio::io_context& io_;
  const Options options_;
  const Callbacks callbacks_;
  boost::asio::steady_timer again_, drain_;
  std::shared_ptr<Life> life_;
  std::chrono::steady_clock::time_point started_;
  std::chrono::milliseconds backoff_{0};
  std::chrono::milliseconds drain_most_;
  std::function<void()> done_;
  bool is_down_ = false;  // for good: the job's plan is of no use
};

}  // namespace aimaster
