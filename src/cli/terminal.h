// What the other side of an output is, and what may be sent to it: colours and a width for a person at a terminal,
// plain text for a pipe or a file.
#pragma once

#include <string>
#include <string_view>

namespace aimaster::cli {

enum class Colour { kNone, kBold, kDim, kRed, kGreen, kYellow, kBlue };

struct Terminal {
  bool is_terminal = false;
  bool redraws = false;  // a line can be taken back
  bool colours = false;
  int width = 0;  // columns; 0: no limit

  // The text in this colour, where colours are on.
  std::string Paint(Colour colour, std::string_view text) const;
};

// Of standard output (1) or standard error (2). NO_COLOR (set and not empty) and TERM=dumb switch colours off.
Terminal LookAt(int descriptor);

}  // namespace aimaster::cli
