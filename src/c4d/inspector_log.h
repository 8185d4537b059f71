// A log of NCCL's Inspector: what one process tells of each operation that it has finished, one JSON object a line.
//
//   header      the communicator, its size, and the place of the process in it
//   metadata    the version, host, process, and when the line was written
//   coll_perf   the collective: its kind, number, size, and for how long its kernel ran; p2p_perf: a send or receive
//   dump_stats  since version 4.3: header and metadata stand here once, for so many lines that follow
//
// Collectives are numbered kind by kind. Those that are smaller than a limit are not told (8 KiB, unless it is set),
// nor those that were overwritten before they were written; gaps in the numbers show both.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "c4d/observation.h"
#include "core/error.h"

namespace aimaster::c4d {

struct InspectorRecord {
  uint32_t group = 0;  // in the log
  Function function = Function::kOtherCollective;
  uint64_t sequence = 0;
  uint64_t bytes = 0;
  Duration duration{};
  Duration written{};  // since 1970, by the clock of the process
};

struct InspectorGroup {
  std::string id;  // "0x7f8c496ae9f661"
  uint32_t size = 0;
  uint32_t position = 0;
};

struct InspectorLog {
  std::string process;  // "process 438776 on host-3"
  std::vector<InspectorGroup> groups;
  std::vector<InspectorRecord> records;  // as they stand there
  uint64_t lines_left_out = 0;           // damaged, foreign, or without the line that says what they are of
  uint64_t lines_without_device = 0;     // whose time is not that of a device
};

// By its first bytes.
bool LooksLikeInspectorLog(std::string_view bytes);

// An error's message begins with what is wrong, to follow the file's name. Of a log that is cut the lines that are
// whole are used: each says something by itself.
Result<InspectorLog> ReadInspectorLog(std::string_view bytes, size_t records_max);

}  // namespace aimaster::c4d
