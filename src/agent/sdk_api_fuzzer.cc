// Whatever a rank sends: an answer, and nothing reaches the agent that is longer or stranger than promised.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "agent/sdk_api.h"
#include "core/failure.h"

namespace {

class PickyNode : public aimaster::agent::SdkApi::Node {
 public:
  aimaster::Status AddRetryableErrors(const std::vector<std::string>& texts) override {
    for (const std::string& text : texts) {
      if (text.empty() || text.size() > aimaster::kRetryableTextMaxBytes) std::abort();
    }
    return {};
  }
  aimaster::Status SetStep(pid_t, std::optional<uint32_t> rank, uint64_t step) override {
    if (rank.value_or(0) > 10'000'000 || step >> 53 != 0) std::abort();
    return {};
  }
  State GetState() const override { return {}; }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  PickyNode node;
  aimaster::agent::SdkApi api(node);
  const std::string body(reinterpret_cast<const char*>(data), size);
  for (const char* target : {"/v1/retryable_errors", "/v1/step"}) {
    const unsigned status = api.Answer({"POST", target, body}, 1).status;
    if (status != 200 && status != 400) std::abort();
  }
  return 0;
}
