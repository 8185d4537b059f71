#include "cli/starter.h"

#include <signal.h>

#include <algorithm>

namespace aimaster::cli {

Starter::Starter(Interrupts& interrupts, std::optional<std::chrono::seconds> patience) : interrupts_(interrupts) {
  if (patience) patience_.max = std::min<std::chrono::milliseconds>(patience_.max, *patience);
  patience_.is_interrupted = [this] {
    while (const std::optional<int> number = interrupts_.Next()) {
      if (*number == SIGINT || *number == SIGTERM || *number == SIGHUP) interrupted_by_ = number;
    }
    return interrupted_by_.has_value();
  };
}

Result<LookedAfter> Starter::EnsureSupervisor(const std::filesystem::path& job_directory) {
  return cli::EnsureSupervisor(job_directory, patience_);
}

}  // namespace aimaster::cli
