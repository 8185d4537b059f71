#include "journal/attempts_on_disk.h"

#include <charconv>
#include <optional>
#include <system_error>
#include <vector>

namespace aimaster {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> FoldersIn(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored)) folders.push_back(entry->path());
  }
  return folders;
}

std::optional<Attempt> AttemptOf(const fs::path& folder) {
  const std::string name = folder.filename().string();
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc{} || end != name.data() + name.size()) return std::nullopt;
  return Attempt{number};
}

}  // namespace

fs::path FindUnknownAttempt(const fs::path& nodes, const std::map<std::string, Attempt>& known) {
  for (const fs::path& node : FoldersIn(nodes)) {
    for (const fs::path& instance : FoldersIn(node)) {
      const auto last = known.find(instance.filename().string());
      for (const fs::path& folder : FoldersIn(instance)) {
        const std::optional<Attempt> attempt = AttemptOf(folder);
        if (attempt && (last == known.end() || *attempt > last->second)) return folder;
      }
    }
  }
  return {};
}

}  // namespace aimaster
