// Which inherited variables must not reach a rank. Started from inside a torchrun worker, an MPI process or a Slurm
// step, we carry variables that say "you are rank 3 of 8": a rank that believed them would join another job, or wait
// for ever.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"

namespace aimaster::cli {

// Says who a process is within a job, or how it finds the others.
bool IsRankBearing(std::string_view name);

// The environment of the job: `inherited` ("NAME=value") less what bears a rank, unless `keep_all`; then `given`
// ("K=V") on top, which is never scrubbed. An error of kind kUsage when one of `given` is no K=V.
Result<std::map<std::string, std::string>> JobEnvironment(std::span<const char* const> inherited, bool keep_all,
                                                          std::span<const std::string> given);

}  // namespace aimaster::cli
