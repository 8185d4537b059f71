#include "cli/attempt_logs.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <tuple>

#include "shim/launch_format.h"

namespace aimaster::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uintmax_t kClaimMaxBytes = 1 << 20;

// The entries of a directory; none when it can't be read, since directories come and go while a job runs.
std::vector<fs::path> Entries(const fs::path& directory) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    entries.push_back(entry->path());
  }
  return entries;
}

std::optional<uint32_t> ParseNumber(const std::string& text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<uint32_t> Number(const json& object, const char* key) {
  const auto member = object.find(key);
  if (member == object.end() || !member->is_number_unsigned()) return std::nullopt;
  return member->get<uint32_t>();
}

std::optional<AttemptLogs> ReadAttempt(const fs::path& directory, const std::string& instance) {
  const std::optional<uint32_t> attempt = ParseNumber(directory.filename().string());
  if (!attempt) return std::nullopt;
  std::error_code error;
  const fs::path file = directory / "claim.json";
  if (const uintmax_t size = fs::file_size(file, error); error || size > kClaimMaxBytes) return std::nullopt;
  std::ifstream stream(file, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  const json claim = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!claim.is_object()) return std::nullopt;

  AttemptLogs logs{.instance = instance, .attempt = *attempt, .directory = directory};
  logs.round = Number(claim, "round").value_or(0);
  fs::path log_directory = directory;
  if (const auto member = claim.find("log_directory"); member != claim.end() && member->is_string()) {
    if (const std::string& path = member->get_ref<const std::string&>(); !path.empty()) log_directory = path;
  }
  const auto ranks = claim.find("ranks");
  if (ranks == claim.end() || !ranks->is_array()) return std::nullopt;
  for (const json& entry : *ranks) {
    if (!entry.is_object()) return std::nullopt;
    const std::optional<uint32_t> rank = Number(entry, "rank"), local = Number(entry, "local");
    if (!rank || !local) return std::nullopt;
    const std::string name = "rank" + std::to_string(*local);
    logs.ranks.push_back({*rank, log_directory / (name + ".out"), log_directory / (name + ".err")});
  }
  std::ranges::sort(logs.ranks, {}, &RankLog::rank);
  return logs;
}

}  // namespace

bool AttemptLogs::HasEnded() const {
  std::error_code error;
  return fs::exists(directory / AIMASTER_FILE_ENDED, error);
}

std::vector<AttemptLogs> FindAttempts(const fs::path& job_directory, const std::string& instance,
                                      const std::set<fs::path>& known) {
  std::vector<AttemptLogs> attempts;
  for (const fs::path& node : Entries(job_directory / "nodes")) {
    const std::vector<fs::path> instances = instance.empty() ? Entries(node) : std::vector{node / instance};
    for (const fs::path& directory : instances) {
      for (const fs::path& attempt : Entries(directory)) {
        if (known.contains(attempt)) continue;
        if (auto logs = ReadAttempt(attempt, directory.filename().string())) attempts.push_back(*std::move(logs));
      }
    }
  }
  std::ranges::sort(attempts, {}, [](const AttemptLogs& logs) {
    return std::tuple(logs.ranks.empty() ? UINT32_MAX : logs.ranks.front().rank, logs.attempt);
  });
  return attempts;
}

}  // namespace aimaster::cli
