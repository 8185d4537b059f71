// A process that outlives its starter: a session of its own, default signals, nothing on standard input, all that it
// says appended to a file, and nothing of ours but the environment. A descriptor that a script had open, a closed
// signal, a working directory would otherwise be held for as long as the job lives.
#pragma once

#include <sys/types.h>

#include <expected>
#include <filesystem>
#include <string>
#include <vector>

namespace aimaster {

// The process, or an errno. `words` begin with the program's path.
std::expected<pid_t, int> StartDetached(std::vector<std::string> words, const std::filesystem::path& log);

}  // namespace aimaster
