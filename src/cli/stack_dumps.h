// Dumps of call stacks that a person has in files, as one capture.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "stacks/capture.h"

namespace aimaster::cli {

// Of all files, in order. A file that can't be read, or holds nothing that is known, is an error that names it.
Result<stacks::Capture> MergeDumpFiles(const std::vector<std::string>& files);

// "rank12.txt", "dump_rank-3.json", "7.txt": the rank that a file's name tells.
std::optional<uint32_t> RankInName(std::string_view path);

}  // namespace aimaster::cli
