// A dump of PyTorch's Flight Recorder: what one rank remembers of its collectives, as it wrote it down when something
// timed out, or when it was asked to.
//
//   pg_config   the groups that the rank belongs to: name, description, members
//   pg_status   for each group the numbers of the last operation enqueued, started and completed
//   entries     the last operations, or only those that are not done
//
// The three name a group in different ways: pg_config and entries by the name that all members share, pg_status by a
// number that means something in this process alone. JoinGroups says which is which.
//
// Versions 2.1 to 2.10 are known; what a version does not say is simply not there, and what it says beyond is passed
// over. Pickle or JSON is told by the first byte, for the name of the file does not tell.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "c4d/observation.h"
#include "core/error.h"

namespace aimaster::c4d {

struct DumpGroup {
  std::string name;
  std::string description;
  std::vector<Rank> members;  // ascending; empty: not told
};

// Numbers as the recorder counts them: of collectives, but of point-to-point operations where the last was one. None:
// there was no such operation yet.
struct DumpStatus {
  int64_t group_id = 0;
  std::optional<uint64_t> enqueued, started, completed;
};

struct DumpEntry {
  uint64_t record = 0;  // in the order in which the rank issued them
  std::optional<int64_t> group_id;
  std::string group;  // its name; empty: not told
  std::string description;
  std::string name;  // "nccl:_all_gather_base", without what differs among members
  std::string type;
  Function function = Function::kOtherCollective;
  uint64_t collective_sequence = 0;
  uint64_t point_to_point_sequence = 0;
  uint64_t count = kUnknown;
  // Of point-to-point operations: positions in the group's members.
  std::optional<uint32_t> own_position, peer_position;
  bool is_point_to_point = false;
  bool is_batch = false;  // stands for those of the same number before it, which are never marked as done themselves
  bool is_started = false;
  bool is_done = false;
  bool tells_start = false;  // the rank looked when it started
  int64_t created_ns = 0;    // since 1970, on the rank's clock; 0: not told
  int64_t changed_ns = 0;    // the last of created, started, completed
};

struct FlightRecorderDump {
  std::string version;
  std::vector<DumpGroup> groups;
  std::vector<DumpStatus> statuses;
  std::vector<DumpEntry> entries;  // by record
  // There, and nothing of it is missing.
  bool has_groups = false;
  bool has_statuses = false;
  bool has_entries = false;
  bool tells_starts = false;  // the rank kept the times of starts: an operation that is not started has not been
  bool is_whole = true;
  std::string trouble;  // why not: "it is cut short"

  // Nothing was recorded at all; perhaps the recorder was off.
  bool is_empty() const { return groups.empty() && statuses.empty() && entries.empty(); }
};

// An error's message begins with what is wrong, to follow the file's name: "is neither a pickle nor JSON".
Result<FlightRecorderDump> ReadFlightRecorderDump(std::string_view bytes);

// The name of the group for each number in pg_status that can be told. Entries name a group both ways, and are
// believed. Between those the rest is joined by order, for a process numbers its groups as they are made, and so do
// their names; but only where numbers and names are equally many. What can't be told is left out: a wrong counter
// accuses somebody, a missing one nobody.
std::map<int64_t, std::string> JoinGroups(const FlightRecorderDump& dump);

// What a name says that the recorder gave to an operation: "nccl:_all_gather_base".
Function FunctionOf(std::string_view profiling_name);

}  // namespace aimaster::c4d
