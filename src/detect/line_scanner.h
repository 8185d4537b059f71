// LineScanner reads a rank's output the way a person looks for the error in it: whole lines, without colours and
// labels, source lines of tracebacks skipped, the rest held against all rules at once. Keeping the whole tail and
// searching it after the death was rejected: the telling line can be megabytes back, and a gigabyte read at the moment
// of a failure delays the restart.
//
// As such a person it runs its eye over pages, and reads a line only where a word catches it; from a traceback's first
// line on it reads every line, until that has ended.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/failure.h"
#include "detect/line_splitter.h"
#include "detect/pattern_matcher.h"
#include "detect/step_words.h"
#include "detect/suspect_lines.h"
#include "detect/traceback.h"

namespace aimaster {

// A traceback of which nothing came for so long was cut off: its exception does not come any more.
inline constexpr uint64_t kTracebackReachBytes = 64 << 10;

enum class Reading {
  kSuspectLines,
  kEveryLine,  // finds the same, several times slower: what the other is measured by
};

// Whether it is worth a look how far the training is: since a rule knew a line, until the job has gone on after it.
struct ProgressWatch {
  uint64_t event = 0;  // offset of the last such line
  uint64_t until = 0;  // offset; 0: nothing is looked for
};

// One per output file; lives on the thread of its matcher, which must outlive it. Its memory is bounded whatever comes.
class LineScanner {
 public:
  // `file` is what LineMatch::file will say: "rank0.err".
  LineScanner(PatternMatcher& matcher, std::string file, Reading reading = Reading::kSuspectLines);

  // The next bytes of the file; `offset` is the place of the first in it. Bytes may be left out, and a smaller offset
  // means that the file was truncated: scanning goes on with a new line.
  void Feed(std::string_view bytes, uint64_t offset);
  // The file ends here; a last line without newline counts too. More may follow all the same.
  void Finish();
  // What was said before this offset is no news any more, and makes room.
  void Forget(uint64_t before);

  // For each of the strongest rules that matched, its first line and its last one, in the order of the file; at most
  // kMatchesPerRankMax. A flood of weak lines can't push out a strong one. Where the job went on after one of them, the
  // last sign of it too (outlived.h).
  std::vector<LineMatch> Matches() const;

  // Scanners of one file, a voice each, can share the watch: what one tells of, the progress of another shows to be
  // outlived. It must outlive the scanner.
  void ShareWatch(ProgressWatch& watch) { shared_watch_ = &watch; }
  // The last sign, whether or not it comes after anything; null where there is none.
  const LineMatch* went_on() const { return went_on_ ? &*went_on_ : nullptr; }

  // What a person would quote: the last exception, unless much was printed after it; else the last line that is no
  // boilerplate. At most kErrorTextMaxBytes; empty when nothing was printed.
  std::string last_error_line() const;

 private:
  struct Hits {
    LineMatch first;
    std::optional<LineMatch> last;
  };

  // One speaker in the file: several ranks may write to it, their tracebacks interleaved line by line.
  struct Voice {
    Traceback traceback;
    std::optional<RuleIndex> chain_rule;  // of the exceptions of the chain so far, the strongest
    bool exception_goes_on = false;       // its message is on the next line
    uint64_t heeded_at = 0;               // of the last line that was part of a traceback
    std::string broken_off;               // a launcher's sentence that the next line ends
    uint64_t broken_off_at = 0;

    bool IsAttentive() const { return traceback.IsAttentive() || exception_goes_on || !broken_off.empty(); }
    bool HasMemory() const { return IsAttentive() || chain_rule || traceback != Traceback(); }
    void GiveUp();
  };

  void OnTruncated();
  void ReadLines(std::string_view text, uint64_t offset);
  void LookAt(std::string_view raw, uint64_t offset);
  void PassOver(std::string_view text, uint64_t offset);
  void KeepLastPassedOver();
  bool KeepLastTelling(std::string_view text, uint64_t offset);
  bool KeepIfTelling(std::string_view raw, uint64_t offset);
  bool IsAttentive(uint64_t offset) const { return attentive_voices_ > 0 && offset <= attentive_until_; }

  void OnLine(std::string_view raw, uint64_t offset);
  Voice& VoiceOf(std::string_view label);
  void KeepVoice(std::string_view label, Voice& voice, bool was_attentive);
  std::optional<RuleIndex> RuleOf(const PatternMatcher::Found& found, LineKind kind, Voice& voice);
  std::optional<RuleIndex> UncaughtException(const PatternMatcher::Found& found) const;
  bool OnBrokenOff(std::string_view line, uint64_t offset, Voice& voice);
  void HeedProgress(std::string_view line, uint64_t offset);
  void HeedStep(std::string_view line, uint64_t offset);
  void HeedProgressIn(std::string_view text, uint64_t offset);
  ProgressWatch& Watch() { return shared_watch_ ? *shared_watch_ : own_watch_; }
  void SayItWentOn(std::string_view line, uint64_t offset);
  void KeepMatch(RuleIndex rule, std::string_view line, uint64_t offset);
  bool HasRecentException() const;
  void KeepTelling(LineKind kind, std::string_view line, uint64_t offset, Voice& voice);

  PatternMatcher& matcher_;
  const std::string file_;
  const Reading reading_;
  LineSplitter splitter_;
  Voice unlabelled_;
  std::map<std::string, Voice, std::less<>> voices_;  // by label, those that remember something; at most kVoicesMax
  Voice new_voice_;
  int attentive_voices_ = 0;
  uint64_t attentive_until_ = 0;  // offset
  std::string buffer_;            // for cleaning, reused

  std::map<RuleIndex, Hits> hits_;  // of the strongest kMatchesPerRankMax / 2 - 1 rules
  ProgressWatch own_watch_;
  ProgressWatch* shared_watch_ = nullptr;
  std::optional<LineMatch> went_on_;
  std::optional<StepWord> counted_from_;
  uint64_t counted_from_offset_ = 0;
  int counted_otherwise_ = 0;  // so many steps in a row were told in another way
  std::string exception_;
  uint64_t exception_offset_ = 0;
  std::string last_line_;
  uint64_t last_line_offset_ = 0;
  uint64_t last_offset_ = 0;  // of the last line that told something, of whatever kind
  struct PassedOver {
    std::string_view text;
    uint64_t offset;
  };
  std::vector<PassedOver> passed_over_;  // of what is being read
};

// A text that is no file, such as the message of an error file, by the same rules.
std::vector<LineMatch> ScanText(PatternMatcher& matcher, std::string_view text, std::string name);

}  // namespace aimaster
