// RasCollection: the reports of RAS that somebody found, one look at the job each.
//
// One look says who has launched less than others, and that is so a hundred times a second in a job that runs well. So
// by itself it accuses nobody. What two looks show unchanged has stood for the time between them; and who knows that
// the job stood when he looked may say so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "c4d/dump_collection.h"
#include "c4d/ras_report.h"
#include "c4d/verdict.h"

namespace aimaster::c4d {

class RasCollection {
 public:
  void Add(std::string file, std::string_view bytes);
  bool is_empty() const { return looks_.empty(); }
  // All of them, for this reason: it follows the file's name.
  void LeaveOut(const std::string& reason);
  // Of the files that are not used; at any time.
  std::vector<DumpNote> TakeNotes();
  // Once, at the end; there is one at least. `stood_for`: for how long the job had stood at the first look, if it is
  // known.
  std::vector<Verdict> Judge(std::optional<Duration> stood_for, const HangTiming& timing, DumpReading& reading);

 private:
  struct Look {
    std::string file;
    uint64_t digest = 0;
    RasReport report;
  };

  void KeepOneJob();

  std::vector<Look> looks_;
  std::vector<DumpNote> notes_;
};

}  // namespace aimaster::c4d
