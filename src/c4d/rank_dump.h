// RankDump: what is kept of one rank's dump, once it is known whose it is: its counters and open operations by group.
//
// A dump of two thousand operations comes down to the twenty that are open, so that the dumps of ten thousand ranks fit
// into memory; and a group's list of members, which every member writes down, is kept once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "c4d/flight_recorder.h"
#include "core/error.h"

namespace aimaster::c4d {

// The groups that dumps name, each once. Two of one name and different members are two groups: the numbers that
// programs give them need not be unique. Where a dump does not tell the members, they are empty.
class GroupTable {
 public:
  struct Group {
    std::string name;
    std::string description;
    std::vector<Rank> members;
  };

  uint32_t Add(const std::string& name, const std::string& description, const std::vector<Rank>& members);
  const std::vector<Group>& groups() const { return groups_; }
  bool is_full() const { return member_count_ > kMembersMaxOfTable; }

 private:
  static const size_t kMembersMaxOfTable;
  std::vector<Group> groups_;
  std::multimap<std::string, uint32_t> by_name_;
  size_t member_count_ = 0;
};

// A rank's part in a group.
struct GroupPart {
  uint32_t group = 0;  // in the table
  std::optional<DumpStatus> status;
  bool has_entries = false;
  bool carries_point_to_point = false;
  // Of the collectives among the entries; 0: none.
  uint64_t last_issued = 0;
  uint64_t last_started = 0;
  uint64_t last_done = 0;
  std::vector<DumpEntry> open;  // the oldest first
  int64_t changed_ns = 0;       // 0: not told
};

struct RankDump {
  std::string file;
  Rank rank{};
  uint64_t digest = 0;  // of the file's bytes
  // Everything that the rank recorded of open operations is here, so that what is not here is not.
  bool is_whole = false;
  // Beyond that: in a group of which nothing is here, it has not issued anything.
  bool tells_all_groups = false;
  bool tells_starts = false;
  int64_t newest_ns = 0;                // of all entries; 0: none tells a time
  std::optional<uint32_t> world_group;  // the one of all ranks
  std::string trouble;                  // why it is not whole
  std::vector<GroupPart> parts;
};

// Whose dump it is: the number at the end of the file's name, unless the groups say otherwise; a rank is in each of
// its groups. An error's message follows the file's name.
Result<Rank> RankOf(std::string_view file, const FlightRecorderDump& dump);

RankDump MakeRankDump(std::string file, Rank rank, const FlightRecorderDump& dump, GroupTable& groups);

}  // namespace aimaster::c4d
