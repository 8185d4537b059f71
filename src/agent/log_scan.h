// LogScan reads one output file of a rank while it grows, so that at a death only the rest has to be read.
//
// The file is the buffer: the rank writes into it and never waits, and whoever reads too slowly passes over what is
// oldest. What a program has survived is no cause of its death, so what it said is remembered for a while only: as long
// as not much has followed it, or as long as it was said just now.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/log_file.h"
#include "core/failure.h"
#include "core/time.h"
#include "detect/line_scanner.h"

namespace aimaster::agent {

class LogScan {
 public:
  // `name` is what the matches will say: "rank0.err".
  LogScan(PatternMatcher& matcher, std::string name) : scanner_(matcher, std::move(name)) {}

  // Reads what has come since, at most `budget` bytes, which are taken off it. True: there is more.
  bool ReadOn(LogFile& file, uint64_t& budget, Monotonic now);

  // All that is to be had, also a last line that has not ended.
  struct Said {
    std::vector<LineMatch> matches;
    std::string last_line;
  };
  Said ReadAll(LogFile& file, Monotonic now);

 private:
  void StartAt(LogFile& file, uint64_t offset);
  void NoteTime(uint64_t size, Monotonic now);
  // Of what stands before this offset a death can't be the consequence any more.
  uint64_t NewsFrom(uint64_t size) const;

  LineScanner scanner_;
  bool has_begun_ = false;
  uint64_t offset_ = 0;  // of the next byte
  struct Mark {
    Monotonic time;
    uint64_t offset = 0;
  };
  Mark older_, newer_;  // where the file ended then; kSaidJustNow apart at least
};

}  // namespace aimaster::agent
