// A record of communication (c4d/record_reader.h) as the agent sends it and the master takes it in. A record in shared
// memory is half a megabyte, most of it empty or of no use to who looks for a hang: what is sent of it is some hundreds
// of bytes.
#pragma once

#include <optional>

#include "aimaster/v1/agent.pb.h"
#include "c4d/record_reader.h"

namespace aimaster {

// Without the operations that are over, and all but those losses that a verdict depends on. `id`, the attempt, is the
// caller's affair.
v1::ProcessRecord ToMessage(const c4d::Record& record);

// None: it contradicts itself, as one of another version might.
std::optional<c4d::Record> FromMessage(const v1::ProcessRecord& message);

}  // namespace aimaster
