// Where the output of ranks lies: the attempts of a job's instances, found in the job directory. The files are asked
// and not the journal: an attempt that lived shorter than the journal's last change is there too, and so is every byte.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace aimaster::cli {

struct RankLog {
  uint32_t rank = 0;
  std::filesystem::path out, err;
};

struct AttemptLogs {
  std::string instance;
  uint32_t attempt = 0;
  uint32_t round = 0;
  std::filesystem::path directory;
  std::vector<RankLog> ranks;  // ascending

  bool HasEnded() const;  // no process of it exists any more: its files are complete
};

// All attempts under `job_directory`, of the instance with this name or (empty) of all, less those whose directories
// are in `known`; by first rank, then by attempt.
std::vector<AttemptLogs> FindAttempts(const std::filesystem::path& job_directory, const std::string& instance = "",
                                      const std::set<std::filesystem::path>& known = {});

}  // namespace aimaster::cli
