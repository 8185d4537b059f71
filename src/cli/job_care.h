// JobCare: who looks after a job at this moment, and whether they can. A process that is there may be stopped or hang,
// and one that is not may be on its way; what people need then is who it is, and what sets it right.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cli/supervisor_life.h"
#include "journal/job_directory.h"

namespace aimaster::cli {

struct JobCare {
  std::optional<MasterAddress> master;        // its process lives
  std::optional<ProcessIdentity> supervisor;  // likewise
  bool leads = false;                         // the master answers
  std::string trouble;                        // why nothing is decided, and the cure; empty: it is
  std::string note;                           // what will be the matter should something fail; or empty
};

// Asks the master, for as long as that.
JobCare LookAtCare(const JobDirectory& directory, std::chrono::milliseconds answer_max);

// Where the master of a job listens: "127.0.0.1:41001", with the certificate's fingerprint where it speaks TLS.
std::string ListeningText(const MasterAddress& master, const JobSpec& spec);

// What of a job still runs on this machine, from the locks that it holds; needs no journal.
struct LivingParts {
  std::vector<std::string> processes;  // "its master (process 7)"
  size_t instances = 0;                // whose shim lives
  bool any() const { return !processes.empty() || instances > 0; }
};
LivingParts FindLivingParts(const JobDirectory& directory);
// "its master (process 7), its agent of node-0 (process 8) and 2 instances"; or "nothing of it".
std::string Describe(const LivingParts& parts);

}  // namespace aimaster::cli
