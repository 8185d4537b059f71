#include "cli/trouble_watch.h"

#include <nlohmann/json.hpp>

#include "cli/launch_master.h"
#include "cli/master_call.h"
#include "cli/text.h"

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
  const Result<std::string> answer = AskMaster(job_directory_, "/api/v1/status", kAnswerMax);
  std::string trouble;
  if (answer) {
    silent_looks_ = 0;
    const nlohmann::json status = nlohmann::json::parse(*answer, nullptr, /*allow_exceptions=*/false);
    if (!status.is_object() || !status.contains("trouble") || !status["trouble"].is_string()) return std::nullopt;
    trouble = OneLine(status["trouble"].get<std::string>());
  } else if (++silent_looks_ < kSilentLooksMax) {
    return std::nullopt;  // it may just be started again
  } else {
    trouble = "no master answers (" + OneLine(answer.error().message) + ")";
    if (const std::string said = LastLogLine(job_directory_); !said.empty()) trouble += "; its log ends with: " + said;
  }
  if (trouble == known_) return std::nullopt;
  known_ = std::move(trouble);
  return known_.empty() ? "the master decides again" : "the ranks go on, but nothing is decided: " + known_;
}

}  // namespace aimaster::cli
