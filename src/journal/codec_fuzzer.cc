// Any bytes as a row of a journal: an error, or a value that survives being written and read again.
#include <cstdint>

#include "core/check.h"
#include "journal/codec.h"

namespace aimaster {
namespace {

template <typename T>
void TryRow(Result<T> (*decode)(std::string_view), std::string (*encode)(const T&), std::string_view text) {
  const Result<T> decoded = decode(text);
  if (!decoded) {
    CHECK(!decoded.error().message.empty());
    return;
  }
  const std::string written = encode(*decoded);
  const Result<T> again = decode(written);
  CHECK(again && *again == *decoded);
  CHECK(encode(*again) == written);
}

}  // namespace
}  // namespace aimaster

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace aimaster;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  TryRow<Input>(DecodeInput, EncodeInput, text);
  TryRow<JobSpec>(DecodeJobSpec, EncodeJobSpec, text);
  TryRow<JobSummary>(DecodeJobSummary, Encode, text);
  TryRow<InstanceState>(DecodeInstance, Encode, text);
  TryRow<NodeState>(DecodeNode, Encode, text);
  TryRow<RoundState>(DecodeRound, Encode, text);
  TryRow<RestartRecord>(DecodeRecord, Encode, text);
  TryRow<Decision>(DecodeDecision, Encode, text);
  TryRow<JobEvent>(DecodeEvent, Encode, text);
  TryRow<RankFailure>(DecodeFailure, Encode, text);
  TryRow<StateRest>(DecodeStateRest, Encode, text);
  TryRow<StoredState>(DecodeStoredState, Encode, text);
  return 0;
}
