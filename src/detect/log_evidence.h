// LogEvidence reads log files of a job that has ended somewhere else, and sorts what is in them by rank.
//
// Think of the minutes of a meeting: who said what is written in front of each line, or it is a paper of one person
// alone. Judging a file as a whole was rejected: in a mixed log the consequences are many and loud, and the rank that
// began is one line among them.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/failure.h"
#include "detect/line_scanner.h"
#include "detect/log_speaker.h"
#include "detect/pattern_matcher.h"

namespace aimaster {

// What one rank said, in however many files.
struct LogRank {
  std::optional<uint32_t> number;  // none: it can't be told
  std::string name;                // for people: "rank 3", "node-a", "train.log"
  bool is_nobody = false;          // lines of a file of many ranks that no one owns: of the launcher, the kernel …
  uint32_t voices = 1;             // how many speak in its file: what others print in between is not its own
  std::vector<LineMatch> matches;
  std::string last_error_line;
};

// Pure: bytes in, evidence out. Its memory is bounded by the number of files and ranks, not by what these printed. The
// matcher must outlive it.
class LogEvidence {
 public:
  explicit LogEvidence(PatternMatcher& matcher) : matcher_(matcher) {}

  // A file begins; `path` as it was named.
  void Begin(const std::string& path);
  // Its next bytes; any cut will do.
  void Feed(std::string_view bytes);
  void End();

  // In the order in which they were met.
  std::vector<LogRank> Ranks() const;

 private:
  struct Voice {
    Voice(Speaker who, PatternMatcher& matcher, const std::string& path)
        : speaker(std::move(who)), scanner(matcher, path) {}
    Speaker speaker;
    LineScanner scanner;
  };
  struct File {
    std::string path;
    std::optional<RankFile> owner;
    std::list<Voice> voices;  // in the order in which they were met; the first one is nobody's
    std::map<std::string, Voice*, std::less<>> by_name;
    ProgressWatch watch = {};  // of all voices
  };

  class Sorting;

  void FeedLines(std::string_view bytes, uint64_t offset);
  Voice& VoiceOf(std::string_view line);
  Voice& AddVoice(Speaker speaker);

  PatternMatcher& matcher_;
  std::list<File> files_;
  // Of the file that is being read.
  std::string pending_;                 // a line that is not whole yet, at most kLineMaxBytes and a piece
  std::optional<uint32_t> table_rank_;  // of torchelastic's table of failures: whom its next lines are about
  Voice* long_line_ = nullptr;          // whose line goes on that was too long to be kept
  uint64_t offset_ = 0;
};

}  // namespace aimaster
