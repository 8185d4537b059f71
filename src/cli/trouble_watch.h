// TroubleWatch: what keeps a master from deciding, asked of the master itself. All else that people are told
// is read from the journal; but a journal that can't be written can't say so.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

namespace aimaster::cli {

class TroubleWatch {
 public:
  explicit TroubleWatch(std::filesystem::path job_directory) : job_directory_(std::move(job_directory)) {}

  // Asks every few seconds, and blocks for a fifth of one at most. A line when it has changed: the trouble, or that it
  // is over.
  std::optional<std::string> Look(std::chrono::steady_clock::time_point now);

 private:
  std::filesystem::path job_directory_;
  std::chrono::steady_clock::time_point next_{};
  int silent_looks_ = 0;
  std::string known_;
};

}  // namespace aimaster::cli
