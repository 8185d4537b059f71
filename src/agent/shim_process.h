// Starts the shim of an attempt.
#pragma once

#include <expected>
#include <string>

#include "agent/attempt_files.h"
#include "agent/process_identity.h"

namespace aimaster::agent {

// The shim inherits nothing of ours but its own log as fd 2. SIGTERM, SIGQUIT, SIGUSR1 and SIGUSR2 are blocked in it
// from its first instruction: an order that comes before it listens waits for it, and does not kill it.
// An errno on failure.
std::expected<ProcessIdentity, int> SpawnShim(const std::string& shim_path, const AttemptDirectory& directory);

}  // namespace aimaster::agent
