// Starter: a command that needs the job to have a supervisor, of a person who may change his mind meanwhile.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>

#include "cli/interrupts.h"
#include "cli/launch_master.h"

namespace aimaster::cli {

class Starter {
 public:
  // Waits for others no longer than `patience`, and not beyond SIGINT, SIGTERM or SIGHUP.
  explicit Starter(Interrupts& interrupts, std::optional<std::chrono::seconds> patience = std::nullopt);

  Result<LookedAfter> EnsureSupervisor(const std::filesystem::path& job_directory);
  // The signal that ended the waiting, if one did.
  std::optional<int> interrupted_by() const { return interrupted_by_; }

 private:
  Interrupts& interrupts_;
  StartPatience patience_;
  std::optional<int> interrupted_by_;
};

}  // namespace aimaster::cli
