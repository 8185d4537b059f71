// The captures of a job, in its directory: stacks/<number>.json. The last few are kept.
#pragma once

#include <filesystem>

#include "engine/input.h"
#include "master/stack_collector.h"
#include "stacks/capture.h"

namespace aimaster {

inline constexpr size_t kStackFilesKept = 16;

// Writes it, whole or not at all, and says what the engine is to know: also that it could not be written.
StacksCaptured WriteStacks(const std::filesystem::path& job_directory, const stacks::Capture& capture,
                           const RanksOfInstances& instances);

}  // namespace aimaster
