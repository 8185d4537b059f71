// MasterCall: what a person asks of a running master, asked until the master has understood. The master may just be
// starting, or be starting again after a crash: then nobody answers for a moment, and the wish must not be lost.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/status.h"

namespace aimaster::cli {

// One request to the master of the job in this directory, to where its master.json says. Blocks for at most a second.
Result<std::string> CallMaster(const std::filesystem::path& job_directory, const std::string& target,
                               const std::string& body);
// The same for a question, which changes nothing.
Result<std::string> AskMaster(const std::filesystem::path& job_directory, const std::string& target,
                              std::chrono::milliseconds timeout);

// Wishes of one follower. Pursue is called again and again; it never waits for long.
class MasterWishes {
 public:
  explicit MasterWishes(std::filesystem::path job_directory) : job_directory_(std::move(job_directory)) {}

  // `by` is what the journal will say: "SIGINT".
  void Stop(bool at_once, std::string by);
  void Signal(std::string name);  // "SIGUSR1"

  // `status` is the job's as the journal has it: a stop counts as understood when it is seen there, since a master may
  // die between its answer and its journal.
  void Pursue(std::chrono::steady_clock::time_point now, JobStatus status);

  bool stop_asked() const { return stop_.has_value(); }
  bool pending() const;  // something that no master has answered yet
  const std::string& last_error() const { return last_error_; }

 private:
  struct StopWish {
    bool at_once = false;
    std::string by;
    bool answered = false;
  };

  std::filesystem::path job_directory_;
  std::optional<StopWish> stop_;
  std::vector<std::string> signals_;
  std::chrono::steady_clock::time_point next_try_{};
  JobStatus status_ = JobStatus::kCreating;
  std::string last_error_;
};

}  // namespace aimaster::cli
