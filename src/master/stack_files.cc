#include "master/stack_files.h"

#include <string>
#include <vector>

#include "journal/files.h"
#include "journal/stack_files.h"
#include "stacks/document.h"

namespace aimaster {
namespace {

void RemoveOld(const std::filesystem::path& job_directory) {
  const std::vector<uint32_t> captures = StackFileNumbers(job_directory);
  std::error_code error;
  for (size_t i = 0; i + kStackFilesKept < captures.size(); ++i) {
    std::filesystem::remove(job_directory / StackFileName(captures[i]), error);
  }
}

}  // namespace

StacksCaptured WriteStacks(const std::filesystem::path& job_directory, const stacks::Capture& capture,
                           const RanksOfInstances& instances) {
  const std::string name = StackFileName(capture.number);
  const std::filesystem::path file = job_directory / name;
  std::error_code error;
  std::filesystem::create_directory(file.parent_path(), error);
  const Status written = WriteFileAtomically(file, stacks::FormatDocument(capture), 0600);
  StacksCaptured told = SummarizeStacks(capture, written ? name : "", instances);
  if (!written) told.summary += "; the stacks are lost: " + written.error().message;
  RemoveOld(job_directory);
  return told;
}

}  // namespace aimaster
