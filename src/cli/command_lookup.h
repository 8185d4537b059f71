// Is there a program behind the job's command? Asked before anything is created, with the job's own PATH and working
// directory, so that a slip of the pen is answered at once and not by a job that failed to start.
//
// The shim asks again by executing it: what is true here may be different on another node, or a second later.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace aimaster::cli {

inline constexpr int kExitNotFound = 127;  // as a shell says it
inline constexpr int kExitNotExecutable = 126;

struct LookupFailure {
  int exit_code = kExitNotFound;
  std::string message;  // one sentence
};

// Nothing when `program` can be executed in `directory`; `path` is the job's PATH, none when it has none.
std::optional<LookupFailure> CheckProgram(const std::string& program, const std::filesystem::path& directory,
                                          const std::optional<std::string>& path);

}  // namespace aimaster::cli
