#include "master/stack_files.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <string>
#include <vector>

#include "journal/files.h"
#include "master/stack_collector.h"
#include "stacks/document.h"

namespace aimaster {
namespace {

void RemoveOld(const std::filesystem::path& folder) {
  std::vector<std::pair<uint32_t, std::filesystem::path>> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().stem().string();
    uint32_t number = 0;
    const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), number);
    const bool is_ours = bad == std::errc{} && end == name.data() + name.size() && entry.path().extension() == ".json";
    if (is_ours) files.emplace_back(number, entry.path());
  }
  std::ranges::sort(files, std::greater{});
  for (size_t i = kStackFilesKept; i < files.size(); ++i) std::filesystem::remove(files[i].second, error);
}

}  // namespace

StacksCaptured WriteStacks(const std::filesystem::path& job_directory, const stacks::Capture& capture) {
  const std::string name = StackFileName(capture.number);
  const std::filesystem::path file = job_directory / name;
  std::error_code error;
  std::filesystem::create_directory(file.parent_path(), error);
  const Status written = WriteFileAtomically(file, stacks::FormatDocument(capture), 0600);
  StacksCaptured told = SummarizeStacks(capture, written ? name : "");
  if (!written) told.summary += "; the stacks are lost: " + written.error().message;
  RemoveOld(file.parent_path());
  return told;
}

}  // namespace aimaster
