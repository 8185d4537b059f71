#include "journal/stack_files.h"

#include <algorithm>
#include <charconv>

namespace aimaster {
namespace {

constexpr const char* kFolder = "stacks";
constexpr const char* kExtension = ".json";

}  // namespace

std::string StackFileName(uint32_t capture) {
  return std::string(kFolder) + "/" + std::to_string(capture) + kExtension;
}

std::vector<uint32_t> StackFileNumbers(const std::filesystem::path& job_directory) {
  std::vector<uint32_t> numbers;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(job_directory / kFolder, error)) {
    const std::string name = entry.path().stem().string();
    uint32_t number = 0;
    const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), number);
    const bool is_number = bad == std::errc{} && end == name.data() + name.size();
    if (is_number && entry.path().extension() == kExtension) numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

}  // namespace aimaster
