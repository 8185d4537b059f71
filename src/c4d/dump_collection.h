// DumpCollection: the dumps that somebody found after a job had stopped, in whatever state, put together to one
// observation of all ranks.
//
// A folder of dumps is like a box of witness reports: some are missing, some torn, some are of another accident, some
// are there twice. Each that can't be used is named with the reason, and the rest is used. What a torn report says is
// true, but what it does not say means nothing: its rank counts as not observed, so nobody is accused for a page that
// was lost.
//
// Ages. A dump does not say when it was made, so the caller says for how long the job had stood by then, at the least.
// What was recorded last is so old, and what was before it older by what lies between: on the rank's own clock, or up
// to the middle one of all ranks' clocks, which one clock that runs wrong does not move. So the order in which a rank
// issued its operations, over all groups, is what the ages say for certain.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "c4d/observation.h"
#include "c4d/rank_dump.h"
#include "core/time.h"

namespace aimaster::c4d {

// A file about which something has to be said.
struct DumpNote {
  std::string file;
  std::string reason;    // follows the file's name: "is neither a pickle nor JSON"
  bool is_used = false;  // in part
};

// Whose word the observation rests on.
enum class DumpSource : uint8_t { kFlightRecorder, kRas, kInspector };

struct DumpReading {
  Observation observation;
  std::vector<DumpNote> notes;  // by file
  DumpSource source = DumpSource::kFlightRecorder;
  bool is_judged = true;            // it says enough to tell a job that hangs from one that runs
  size_t ranks_seen = 0;            // whose dump is whole
  size_t dumps_used = 0;            // also those in part
  Duration stood_for{};             // what all ages begin with
  std::optional<Wall> last_record;  // the newest in the job, by the middle one of the ranks' clocks
};

class DumpCollection {
 public:
  // A file's name, and what it holds, which is not needed any more afterwards.
  void Add(std::string file, std::string_view bytes);
  // One that the caller could not read. The reason follows the file's name.
  void LeaveOut(std::string file, std::string reason);
  // Once, at the end.
  DumpReading Take(Duration stood_for);

 private:
  void KeepOnePerRank();
  void LeaveOutOtherJobs();
  void NoteWhatIsMissing();

  GroupTable groups_;
  std::vector<RankDump> dumps_;
  std::vector<DumpNote> notes_;
};

}  // namespace aimaster::c4d
