// Any text may be given as a regular expression: what comes out are short plain texts, or nothing.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "detect/pattern_literals.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto literals = aimaster::RequiredLiterals({reinterpret_cast<const char*>(data), size});
  if (!literals) return 0;
  if (literals->texts.empty()) std::abort();
  for (const std::string& text : literals->texts) {
    if (text.size() < aimaster::kLiteralMinBytes || text.size() > aimaster::kLiteralMaxBytes) std::abort();
    for (const char c : text) {
      if (c < 0x20 || c == 0x7f) std::abort();
    }
  }
  return 0;
}
