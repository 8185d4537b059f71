// Whatever stands in master.json or in the token's file, what is taken from it can be dialled and sent.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "agent/master_file.h"
#include "core/check.h"
#include "wire/tls.h"
#include "wire/token.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace aimaster;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto master = agent::ParseMasterFile(text)) {
    CHECK(master->tls_fingerprint.empty() || IsFingerprint(master->tls_fingerprint));
  }
  const std::string token = agent::ParseTokenFile(text);
  CHECK(token.empty() || IsToken(token));
  return 0;
}
