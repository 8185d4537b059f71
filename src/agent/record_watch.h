// RecordWatch reads what the ranks that run here record of their communication. Once a second it only looks for how
// long somebody has been waiting; the whole is read when the master asks, who does so once that has become long.
//
// Sending the whole every second was rejected: a job of thousands of ranks would tell its master megabytes each second
// of which nothing is of interest.
//
// What the dead have left is not read: a rank of MPI that was killed leaves a record in which it waits for ever. Whose
// process lives is known by the lock that it holds.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/attempt_files.h"
#include "agent/finished_reader.h"
#include "aimaster/v1/agent.pb.h"
#include "c4d/record_observation.h"

namespace aimaster::agent {

class RecordWatch {
 public:
  // Of an attempt that runs. One whose ranks record nothing is left out.
  void Add(AttemptKey key, const AttemptDirectory& directory);
  void Remove(AttemptKey key) { folders_.erase(key); }

  // With what was finished since it was asked last. None: nothing that runs here records.
  std::optional<v1::Communication> Summary();
  // In messages of at most kRecordsMessageBytes and a process.
  std::vector<v1::Records> ReadAll(uint64_t number);

 private:
  struct Reading {
    AttemptKey key;
    pid_t pid = 0;  // of the process; 0: it can't be seen from here
    c4d::Record record;
  };
  // Of living processes that have told their rank, those that are done with communication included.
  std::vector<Reading> Read();
  void ReadFolder(AttemptKey key, const std::string& folder, std::vector<Reading>& readings);
  c4d::Hold HoldOf(pid_t pid);

  std::map<AttemptKey, std::string> folders_;
  std::map<pid_t, Monotonic> in_kernel_since_;
  FinishedReader finished_;
  std::vector<std::byte> buffer_;
};

}  // namespace aimaster::agent
