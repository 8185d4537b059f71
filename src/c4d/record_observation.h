// The records of many ranks as an Observation: who waits where.
//
// Of MPI one thing is known that devices don't tell: what the program itself waits for. A transfer or a collective that
// it has issued and goes on computing holds it up in nothing, however old that is; it becomes something to wait for in
// the moment in which the program asks for its end, and only as long as the program is in that call, or keeps asking.
// So of MPI only what is waited for is outstanding; what is not counts as not issued yet, where nothing later was.
// Taking all that is unfinished for something that is waited for was rejected: a request that a program never asks for
// would make it look stuck for ever, and its peers guilty.
//
// A rank that is in a call of which nothing is recorded waits for somebody who can't be told: it is no culprit.
//
// NCCL tells each process its own rank in a communicator and nothing of the others. So its members are put together
// from the records of all. Where one is missing, it is one of those of whom there is no record at all: if it can't be
// said which, neither by their number nor because the members follow each other in equal steps, the communicator is
// left out. To put in some rank that fits was rejected for those who have a record: they might be accused.
#pragma once

#include <optional>
#include <span>

#include "c4d/observation.h"
#include "c4d/record_reader.h"

namespace aimaster::c4d {

struct RankRecord {
  Rank rank{};  // in the job
  bool is_alive = true;
  Hold hold = Hold::kFree;
  Record record;
};

// How long ago a program may have left a call and yet be taken for one that asks again and again.
inline constexpr Duration kPollingMax = std::chrono::seconds(1);

struct ObservedRecords {
  Observation observation;
  // Of each of its communicators, the id that the records of its source know it by; of what was put together here from
  // operations between two ranks, or of calls that are not recorded, none.
  struct Key {
    RecordSource source = RecordSource::kMpi;
    std::optional<uint64_t> id;
  };
  std::vector<Key> keys;
};

// For how long a process has waited in what it waits in the longest; none: it waits in nothing, or that is not told.
std::optional<Duration> LongestWait(const Record& record);

// Of a job with so many ranks. Of several records of one rank and source the youngest counts. Records of ranks beyond
// the job's are left out.
ObservedRecords ObserveRecords(std::span<const RankRecord> records, uint32_t ranks);

}  // namespace aimaster::c4d
