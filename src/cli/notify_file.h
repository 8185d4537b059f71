// A notify file (`--notify FILE`, docs/notifications.md): read and checked before anything starts; and what a job says
// of its notifications.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "journal/job_directory.h"
#include "journal/job_reader.h"

namespace aimaster::cli {

struct LoadedNotifyFile {
  std::string plan;                    // for the directory of a job
  std::vector<std::string> variables;  // that hold its secrets: neither ranks nor the journal should see them
};
// kUsage names the file, the line in it, and what is wrong.
Result<LoadedNotifyFile> LoadNotifyFile(const std::string& file);

// One sink of a job.
struct SinkState {
  std::string name;
  std::string type;       // "slack"
  int64_t delivered = 0;  // events
  int64_t gave_up = 0;
  int64_t waiting = 0;
  std::string trouble;  // what it answered last, while it takes nothing
};
// In the order of the file; none: the job tells nobody. An error of a plan that can't be read.
Result<std::vector<SinkState>> ReadSinkStates(const JobDirectory& directory, const JobSpec& spec, JobReader& reader);
// "ops (webhook): 12 delivered, 3 waiting (503: try later)"
std::string Describe(const SinkState& sink);
// Of all sinks.
int64_t Waiting(const std::vector<SinkState>& sinks);

}  // namespace aimaster::cli
