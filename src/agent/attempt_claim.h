// Who an attempt is, by whatever is left of its documents. The claim is the first to ask; the launch file says the same
// once more. Either counts only where it fits its place: a file that was copied or restored into the wrong directory
// must not speak for another attempt.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/attempt_files.h"

namespace aimaster::agent {

// kAbsent: nothing says that anybody was to live there. kGarbage: something did, and is damaged or out of place.
Document<Claim> FindClaim(const AttemptDirectory& directory, const std::string& instance_name, uint32_t attempt);

// When no document says who it is, an order may know the key, and the shim the ranks.
Claim MakeUpClaim(const AttemptDirectory& directory, AttemptKey key, const std::string& instance_name,
                  const std::string& own_boot_id);

// A job's name begins the names of its instances; empty when this one is of another form.
std::string JobOfInstance(const std::string& instance_name);

}  // namespace aimaster::agent
