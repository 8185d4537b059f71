// Traceback: which lines of a Python traceback are its frames, and which one is the exception.
// A log scanner without it takes `except ConnectionResetError:` in a shown source line for a lost connection.
#pragma once

#include <string_view>

namespace aimaster {

enum class LineKind {
  kOther,
  kHeader,            // "Traceback (most recent call last):"
  kFrame,             // a frame, or the source line below it
  kException,         // "ValueError: too large", the end of a traceback
  kChainedException,  // the same, of a traceback that began while another exception was handled, or because of it
  kChainLink,         // the sentence between two tracebacks of a chain
};

// Fed with the clean lines of one file in order. Lines of other ranks in between don't disturb it.
class Traceback {
 public:
  LineKind Classify(std::string_view line);

 private:
  bool open_ = false;       // a header was seen, its exception not yet
  bool in_frame_ = false;   // the line before was a frame or part of one
  bool chained_ = false;    // the open traceback continues a chain
  bool link_seen_ = false;  // the next header continues a chain
};

}  // namespace aimaster
