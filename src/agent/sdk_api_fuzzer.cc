// Whatever a rank sends: an answer, and nothing reaches the agent that is longer or stranger than promised.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "agent/limits.h"
#include "agent/sdk_api.h"
#include "core/failure.h"

namespace {

using aimaster::agent::SdkCaller;

class PickyNode : public aimaster::agent::SdkApi::Node {
 public:
  aimaster::Status AddRetryableErrors(const std::vector<std::string>& texts) override {
    for (const std::string& text : texts) {
      if (text.empty() || text.size() > aimaster::kRetryableTextMaxBytes) std::abort();
    }
    return {};
  }
  aimaster::Status SetStep(const SdkCaller& caller, uint64_t step, std::optional<double>) override {
    return Check(caller, step >> 53 == 0);
  }
  aimaster::Status SetCheckpoint(const SdkCaller& caller, uint64_t step) override {
    return Check(caller, step >> 53 == 0);
  }
  aimaster::Status SendMessage(const SdkCaller& caller, const std::string& content) override {
    return Check(caller, !content.empty() && content.size() <= aimaster::agent::kMessageMaxBytes);
  }
  aimaster::Status SetHangInterval(const SdkCaller& caller, int64_t interval_ms) override {
    return Check(caller, interval_ms >= -1 && interval_ms <= 1'000'000'000'000);
  }
  State GetState() const override { return {}; }

 private:
  static aimaster::Status Check(const SdkCaller& caller, bool is_good) {
    const bool is_small = std::max({caller.rank, caller.attempt, caller.round}).value_or(0) < 10'000'000;
    if (!is_good || !is_small) std::abort();
    return {};
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  PickyNode node;
  aimaster::agent::SdkApi api(node);
  const std::string body(reinterpret_cast<const char*>(data), size);
  for (const char* target :
       {"/v1/retryable_errors", "/v1/step", "/v1/checkpoint", "/v1/message", "/v1/hang_interval"}) {
    const unsigned status = api.Answer({"POST", target, body}, 1).status;
    if (status != 200 && status != 400) std::abort();
  }
  return 0;
}
