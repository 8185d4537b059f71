#include "journal/job_rules.h"

#include <utility>

#include "detect/compiled_rules.h"
#include "journal/files.h"

namespace aimaster {

Result<RulesInForce> ReadRulesOf(const JobDirectory& job) {
  const Result<std::string> bytes = ReadFile(job.compiled_rules(), kCompiledRulesMaxBytes);
  if (!bytes && bytes.error().kind == ErrorKind::kNotFound) return RulesInForce::With({});
  Result<CompiledRules> rules = bytes ? DecodeCompiledRules(*bytes) : std::unexpected(bytes.error());
  if (!rules) {
    return Fail(rules.error().kind, job.compiled_rules().string() + ": " + rules.error().message +
                                        "; `aimaster resume` makes it again out of rules.yaml");
  }
  return RulesInForce::With(std::move(*rules));
}

}  // namespace aimaster
