// HelperProgram: a program of ours beside this one, run to its end with a text in and texts out. What they do is too
// large, or too dangerous, to be part of a program that starts for every job and every listing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace aimaster::cli {

struct HelperEnd {
  int exit_code = 0;  // where no signal ended it
  int signal = 0;     // or 0
  std::string output;
  std::string complaint;  // of standard error, its beginning
};

// `name` as "aimaster-rules". kEnvironment when it can't be started.
Result<HelperEnd> RunHelper(const std::string& name, std::vector<std::string> words, std::string_view input,
                            size_t output_max_bytes);

}  // namespace aimaster::cli
