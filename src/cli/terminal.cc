#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace aimaster::cli {
namespace {

constexpr int kUsualWidth = 80;  // of a terminal that does not know its size

std::string_view Code(Colour colour) {
  switch (colour) {
    case Colour::kNone:
      return "";
    case Colour::kBold:
      return "\x1b[1m";
    case Colour::kDim:
      return "\x1b[2m";
    case Colour::kRed:
      return "\x1b[31m";
    case Colour::kGreen:
      return "\x1b[32m";
    case Colour::kYellow:
      return "\x1b[33m";
    case Colour::kBlue:
      return "\x1b[34m";
  }
  return "";
}

bool IsSet(const char* variable) {
  const char* value = getenv(variable);
  return value != nullptr && *value != '\0';
}

}  // namespace

std::string Terminal::Paint(Colour colour, std::string_view text) const {
  if (!colours || colour == Colour::kNone || text.empty()) return std::string(text);
  return std::string(Code(colour)) + std::string(text) + "\x1b[0m";
}

Terminal LookAt(int descriptor) {
  Terminal terminal;
  terminal.is_terminal = isatty(descriptor) == 1;
  if (!terminal.is_terminal) return terminal;
  const char* term = getenv("TERM");
  terminal.redraws = term != nullptr && std::string_view(term) != "dumb";
  terminal.colours = terminal.redraws && !IsSet("NO_COLOR");
  winsize size{};
  terminal.width = ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualWidth;
  return terminal;
}

}  // namespace aimaster::cli
