#include "cli/master_call.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "journal/job_directory.h"
#include "wire/http_client.h"

namespace aimaster::cli {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kCallMax{1000};
constexpr milliseconds kRetryAfterFailure{100};
constexpr milliseconds kRepeatUntilSeen{1000};
constexpr size_t kSignalsMax = 16;  // of a person who holds a key down while no master answers

Result<std::string> Call(const std::filesystem::path& job_directory, const std::string& method,
                         const std::string& target, const std::string& body, milliseconds timeout) {
  const Result<JobDirectory> directory = JobDirectory::Open(job_directory);
  if (!directory) return std::unexpected(directory.error());
  const Result<MasterAddress> address = directory->ReadMasterAddress();
  if (!address) return std::unexpected(address.error());
  const Result<std::string> token = directory->ReadToken();
  if (!token) return std::unexpected(token.error());
  const HttpCallOptions options{.host = address->host,
                                .port = address->port,
                                .token = *token,
                                .fingerprint = address->tls_fingerprint,
                                .timeout = timeout};
  return HttpCall(options, method, target, body);
}

}  // namespace

Result<std::string> CallMaster(const std::filesystem::path& job_directory, const std::string& target,
                               const std::string& body) {
  return Call(job_directory, "POST", target, body, kCallMax);
}

Result<std::string> AskMaster(const std::filesystem::path& job_directory, const std::string& target,
                              milliseconds timeout) {
  return Call(job_directory, "GET", target, "", timeout);
}

void MasterWishes::Stop(bool at_once, std::string by) {
  stop_ = StopWish{.at_once = at_once, .by = std::move(by)};
  next_try_ = {};
}

void MasterWishes::Signal(std::string name) {
  if (signals_.size() < kSignalsMax) signals_.push_back(std::move(name));
  next_try_ = {};
}

bool MasterWishes::pending() const { return !IsEnd(status_) && ((stop_ && !stop_->answered) || !signals_.empty()); }

void MasterWishes::Pursue(std::chrono::steady_clock::time_point now, JobStatus status) {
  status_ = status;
  if (IsEnd(status)) {
    signals_.clear();
    return;
  }
  // A stop at once leaves no trace of its own in the status: it is repeated until the job has ended, which does no
  // harm.
  const bool stop = stop_ && (stop_->at_once || !stop_->answered || status != JobStatus::kStopping);
  if ((!stop && signals_.empty()) || now < next_try_) return;
  if (stop) {
    const nlohmann::json body{{"at_once", stop_->at_once}, {"by", stop_->by}};
    const Result<std::string> answer = CallMaster(job_directory_, "/api/v1/stop", body.dump());
    if (answer) {
      stop_->answered = true;
    } else {
      last_error_ = answer.error().message;
    }
    next_try_ = now + (answer ? kRepeatUntilSeen : kRetryAfterFailure);
  }
  while (!signals_.empty()) {
    const nlohmann::json body{{"signal", signals_.front()}};
    if (const Result<std::string> answer = CallMaster(job_directory_, "/api/v1/signal", body.dump()); !answer) {
      last_error_ = answer.error().message;
      next_try_ = now + kRetryAfterFailure;
      return;
    }
    signals_.erase(signals_.begin());
  }
}

}  // namespace aimaster::cli
