// The names of a job's captures of call stacks, in its directory: stacks/<number>.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace aimaster {

// Within the job's directory.
std::string StackFileName(uint32_t capture);
// The captures that there are, ascending.
std::vector<uint32_t> StackFileNumbers(const std::filesystem::path& job_directory);

}  // namespace aimaster
