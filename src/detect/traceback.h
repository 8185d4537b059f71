// Traceback: which lines of a Python traceback are its frames, and which one is the exception.
// A log scanner without it takes `except ConnectionResetError:` in a shown source line for a lost connection.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace aimaster {

// One of these stands in every line that changes what a Traceback makes of later lines, as long as it makes nothing of
// them yet. Who looks only at lines that hold one of them, and at all lines while IsAttentive, misses nothing.
inline constexpr std::array<std::string_view, 6> kTracebackWords{"Traceback (most recent call last)",
                                                                 "File \"",
                                                                 "During handling of the above exception",
                                                                 "The above exception was the direct cause",
                                                                 "Exception ignored ",
                                                                 "--- Logging error ---"};

// What Python's faulthandler puts around the frames of a crash: "Current thread 0x… (most recent call first):",
// "Extension modules: …". Between "Fatal Python error: …" and the end of the output, and of no worth to a reader.
bool IsCrashDumpHeading(std::string_view line);

enum class LineKind {
  kOther,
  kHeader,            // "Traceback (most recent call last):"
  kFrame,             // a frame, or the source line below it
  kException,         // "ValueError: too large", the end of a traceback
  kChainedException,  // the same, of a traceback that began while another exception was handled, or because of it
  kChainLink,         // the sentence between two tracebacks of a chain
  kIgnoredException,  // Python itself went on after it: raised in a finaliser, or while a log line was written
};

// Fed with the clean lines of one voice in order: of a file, or of the lines in it that bear one label.
class Traceback {
 public:
  LineKind Classify(std::string_view line);
  // Where a logger puts the same words in front of every line of a traceback ("ERROR 03-01 10:00:00 [engine.py:45] "),
  // the line without them. To be asked before Classify.
  std::string_view WithoutLogPrefix(std::string_view line) const;
  // Whether it makes something of the next line, whatever it says.
  bool IsAttentive() const { return open_ || in_frame_ || ignore_next_ || link_seen_; }
  // The rest of what was open does not come any more.
  void GiveUp() { open_ = in_frame_ = ignore_next_ = link_seen_ = false; }
  bool operator==(const Traceback&) const = default;

 private:
  LineKind OnHeader(std::string_view line, size_t header);
  LineKind OnException();

  bool open_ = false;         // a header was seen, its exception not yet
  bool in_frame_ = false;     // the line before was a frame or part of one
  bool chained_ = false;      // the open traceback continues a chain
  bool link_seen_ = false;    // the next header continues a chain
  bool ignore_next_ = false;  // the line before said that the exception to come is ignored
  bool ignored_ = false;      // of the open traceback
  std::string log_prefix_;    // in front of the last header
};

}  // namespace aimaster
