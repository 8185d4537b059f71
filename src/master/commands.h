// Commands: the engine's actions in the words that agents understand.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "aimaster/v1/agent.pb.h"
#include "engine/action.h"
#include "engine/job_state.h"
#include "engine/layout.h"

namespace aimaster {

v1::JobConfig MakeJobConfig(const JobSpec& spec);

// The commands that an action means, each with its node and without an epoch; none for actions that no agent carries
// out.
// `places` are those of the job now, PlacesOnNodes; only starts need them.
std::vector<std::pair<NodeIndex, v1::Command>> MakeCommands(const JobState& job, std::span<const NodePlace> places,
                                                            const Action& action,
                                                            const std::filesystem::path& job_directory);

}  // namespace aimaster
