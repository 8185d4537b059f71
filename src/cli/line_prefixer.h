// LinePrefixer: one rank's output as whole lines with the rank in front, so that the lines of many ranks can be mixed.
// A line that was overwritten with carriage returns (a progress bar) comes out as what a terminal would have left of
// it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace aimaster::cli {

inline constexpr size_t kPrefixedLineMax = 64 << 10;  // a longer one is printed in pieces

// Pure.
class LinePrefixer {
 public:
  explicit LinePrefixer(std::string prefix) : prefix_(std::move(prefix)) {}

  // Appends the lines that are complete now to `out`.
  void Feed(std::string_view bytes, std::string& out);
  // Appends what is left, as a line.
  void Finish(std::string& out);

 private:
  void Emit(std::string& out);

  std::string prefix_;
  std::string line_;
  bool returned_ = false;  // a carriage return was the last thing seen
};

}  // namespace aimaster::cli
