// Any text either is a bounded plan that survives being stored, or gives an error that says something.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "notify/plan_yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace aimaster::notify;
  const auto plan = ParsePlanYaml({reinterpret_cast<const char*>(data), size},
                                  {.file = "f", .directory = "/d", .variable = {}, .check_file = {}});
  if (!plan) {
    if (plan.error().message.empty()) std::abort();
    return 0;
  }
  if (plan->sinks.empty() || plan->sinks.size() > kSinksMax || plan->rules.size() > kRulesMax) std::abort();
  const auto again = DecodePlan(EncodePlan(*plan));
  if (!again || *again != *plan) std::abort();
  return 0;
}
