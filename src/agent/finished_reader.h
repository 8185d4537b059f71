// FinishedReader tells what the ranks that run here have finished communicating since it was asked last, for the master
// to see who is slow: of collectives a sample that is the same on all nodes, of everything else how long it was waited
// in.
//
// A ring holds a thread's last 512 operations. Who finishes more than that between two looks counts as having waited
// all the while: it is accused of nothing, since what it waited in is not known. So does who is in calls of which
// nothing is recorded.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "agent/attempt_files.h"
#include "aimaster/v1/agent.pb.h"
#include "c4d/record_reader.h"

namespace aimaster::agent {

class FinishedReader {
 public:
  // Of a process that has told its rank. The first look at a process tells nothing: how old what it shows is, is not
  // known.
  void Read(AttemptKey key, const c4d::Record& record, v1::Communication& to);
  // All have been read for this time: who was not among them is gone.
  void ForgetOthers();

 private:
  struct Group {
    uint64_t completed = 0;  // of its collectives, at the last look
    uint32_t one_in = 1;     // of them are told
  };
  struct Process {
    Monotonic read;
    std::vector<uint64_t> ordinals;    // of the last of each thread
    std::map<uint64_t, Group> groups;  // by the id of the communicator
    uint32_t look = 0;
  };
  using Key = std::tuple<AttemptKey, c4d::RecordSource, uint64_t, Duration>;  // its process, and when its record began

  static void ChooseSamples(const c4d::Record& record, Duration since, Process& process);

  std::map<Key, Process> processes_;
  uint32_t look_ = 1;
  size_t bytes_ = 0;  // told at this look
};

}  // namespace aimaster::agent
