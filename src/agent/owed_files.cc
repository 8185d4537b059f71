#include "agent/owed_files.h"

#include <algorithm>

#include "agent/limits.h"
#include "agent/log.h"
#include "agent/small_file.h"

namespace aimaster::agent {
namespace {

Status WriteOne(const std::string& path, const std::string& text) {
  if (const Status made = MakeDirectories(path.substr(0, path.rfind('/'))); !made) return made;
  return WriteSmallFile(path, text);
}

}  // namespace

void OwedFiles::Write(const std::string& path, std::string text) {
  std::erase_if(owed_, [&path](const auto& owed) { return owed.first == path; });
  owed_.emplace_back(path, std::move(text));
  TryAgain();
}

void OwedFiles::TryAgain() {
  while (!owed_.empty()) {
    const auto& [path, text] = owed_.front();
    if (const Status written = WriteOne(path, text); !written) {
      if (std::exchange(told_, path) != path) LogError(written.error().message + "; trying again");
      timer_.After(kFileRetry, [this] { TryAgain(); });
      return;
    }
    if (told_ == path) LogInfo(path + " could be written");
    owed_.erase(owed_.begin());
  }
}

}  // namespace aimaster::agent
