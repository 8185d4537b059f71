// AttemptsOnDisk: what the disk says that a journal must know. No attempt's directory is made before its start was
// durable, so a directory of which the journal knows nothing is a journal that has forgotten something.
// Asked only where the durable mark is gone too: it looks into every instance's directory.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "core/ids.h"

namespace aimaster {

// `nodes` is the job's; `known` holds the last attempt of each instance by the instance's name. One directory that
// stands for a later attempt, or for an instance that is not known; empty: there is none, or nothing can be read.
std::filesystem::path FindUnknownAttempt(const std::filesystem::path& nodes,
                                         const std::map<std::string, Attempt>& known);

}  // namespace aimaster
