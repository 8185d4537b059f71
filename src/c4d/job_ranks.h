// NumberRanks: which rank of the job a process is, where sources know only its place in each communicator.
//
// A communicator of all processes numbers them as the launcher did, in nearly every program. Where there is none, any
// numbers will do to tell them apart, and beside a rank its process is named in any case.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/ids.h"

namespace aimaster::c4d {

struct SeatedGroup {
  uint32_t size = 0;
  std::vector<std::pair<uint32_t, std::string>> seats;  // place and process; empty: it is not known who sits there
};

struct JobRanks {
  std::map<std::string, Rank> of;  // by process
  uint32_t count = 0;
  bool is_numbered = false;  // by a communicator of all
};

JobRanks NumberRanks(std::span<const SeatedGroup> groups);

}  // namespace aimaster::c4d
