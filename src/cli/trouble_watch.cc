#include "cli/trouble_watch.h"

#include "cli/job_care.h"
#include "journal/job_directory.h"

namespace aimaster::cli {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kAskEvery{3000}, kAnswerMax{200};
constexpr int kSilentLooksMax = 2;

}  // namespace

std::optional<std::string> TroubleWatch::Look(std::chrono::steady_clock::time_point now) {
  if (now < next_) return std::nullopt;
  const bool is_first = next_ == std::chrono::steady_clock::time_point{};
  next_ = now + kAskEvery;
  if (is_first) return std::nullopt;  // most jobs have no master yet, and short ones never need this
  const Result<JobDirectory> directory = JobDirectory::Open(job_directory_);
  if (!directory) return std::nullopt;
  const JobCare care = LookAtCare(*directory, kAnswerMax);
  silent_looks_ = care.leads ? 0 : silent_looks_ + 1;
  if (!care.leads && silent_looks_ < kSilentLooksMax) return std::nullopt;  // it may just be started again
  std::string trouble = care.trouble;
  if (trouble == known_) return std::nullopt;
  known_ = std::move(trouble);
  return known_.empty() ? "the master decides again" : "the ranks go on, but nothing is decided: " + known_;
}

}  // namespace aimaster::cli
