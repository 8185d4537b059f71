// Whatever lies in rules.compiled: it is refused, or what was read can be written and read again. The input is taken
// for a file whose last bytes, the digest, are put right: nothing else would ever get past it.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/fnv1a.h"
#include "detect/compiled_rules.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  (void)aimaster::DecodeCompiledRules(bytes);
  uint64_t digest = aimaster::Fnv1a(bytes);
  for (int i = 0; i < 8; ++i, digest >>= 8) bytes += static_cast<char>(digest & 0xff);
  const auto rules = aimaster::DecodeCompiledRules(bytes);
  if (!rules) return 0;
  const auto again = aimaster::DecodeCompiledRules(aimaster::Encode(*rules));
  if (!again || *again != *rules) std::abort();
  return 0;
}
