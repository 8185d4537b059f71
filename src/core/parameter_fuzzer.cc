// Any bytes as ErrorMonitoringArgs: either parameters that survive a trip through their own text, or one printable
// line.
#include <cstdint>

#include "core/check.h"
#include "core/parameter_parser.h"
#include "core/quote.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace aimaster;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<ParsedParameters> parsed = ParseParameterString(text);
  if (!parsed) {
    CHECK(parsed.error().kind == ErrorKind::kUsage);
    CHECK(!parsed.error().message.empty() && IsPrintable(parsed.error().message));
    return 0;
  }
  for (const std::string& note : parsed->notes) CHECK(IsPrintable(note));
  const std::string formatted = FormatParameters(parsed->fault_tolerance);
  const Result<ParsedParameters> again = ParseParameterString(formatted);
  CHECK(again && again->fault_tolerance == parsed->fault_tolerance);
  CHECK(FormatParameters(again->fault_tolerance) == formatted);
  return 0;
}
