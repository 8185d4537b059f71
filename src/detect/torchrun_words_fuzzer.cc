// Whatever a rank prints: what is read of torchrun's table is an exit that a process can have.
#include <cstdint>
#include <cstdlib>

#include "detect/torchrun_words.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto failure = aimaster::FindTorchrunFailure({reinterpret_cast<const char*>(data), size});
  if (failure && (failure->exit_code < -64 || failure->exit_code > 255)) std::abort();
  return 0;
}
