#include "agent/oom_kills.h"

#include <charconv>

#include "agent/limits.h"
#include "agent/small_file.h"

namespace aimaster::agent {
namespace {

constexpr size_t kKillsKeptMax = 1024;
constexpr Duration kBelievedFor = 5s;

// The file of our own memory cgroup, in which the ranks live too.
std::string FindCounter() {
  const std::string groups = ReadSmallFile("/proc/self/cgroup", kSmallFileMaxBytes).value_or("");
  for (size_t start = 0; start < groups.size();) {
    const size_t end = std::min(groups.find('\n', start), groups.size());
    const std::string line = groups.substr(start, end - start);
    start = end + 1;
    const size_t controllers = line.find(':');
    const size_t path = controllers == std::string::npos ? controllers : line.find(':', controllers + 1);
    if (path == std::string::npos) continue;
    const std::string names = "," + line.substr(controllers + 1, path - controllers - 1) + ",";
    std::string file;
    if (names == ",,") file = "/sys/fs/cgroup" + line.substr(path + 1) + "/memory.events";
    if (names.find(",memory,") != std::string::npos) {
      file = "/sys/fs/cgroup/memory" + line.substr(path + 1) + "/memory.oom_control";
    }
    const auto text = file.empty() ? std::nullopt : ReadSmallFile(file, kSmallFileMaxBytes);
    if (text && ParseOomKills(*text)) return file;
  }
  return "/proc/vmstat";
}

}  // namespace

std::optional<uint64_t> ParseOomKills(std::string_view text) {
  constexpr std::string_view kName = "oom_kill ";
  for (size_t found = text.find(kName); found != std::string_view::npos; found = text.find(kName, found + 1)) {
    if (found > 0 && text[found - 1] != '\n') continue;
    uint64_t kills = 0;
    const char* const start = text.data() + found + kName.size();
    if (std::from_chars(start, text.data() + text.size(), kills).ec == std::errc{}) return kills;
  }
  return std::nullopt;
}

OomKills::OomKills() : path_(FindCounter()) {
  Look({});
  kills_.clear();
}

void OomKills::Look(Monotonic now) {
  const auto text = ReadSmallFile(path_, kSmallFileMaxBytes);
  const uint64_t kills = text ? ParseOomKills(*text).value_or(seen_) : seen_;
  for (; seen_ < kills && kills_.size() < kKillsKeptMax; ++seen_) kills_.push_back(now);
  seen_ = kills;
  while (!kills_.empty() && now - kills_.front() > kBelievedFor) kills_.pop_front();
}

bool OomKills::Take(Monotonic now) {
  Look(now);
  if (kills_.empty()) return false;
  kills_.pop_front();
  return true;
}

}  // namespace aimaster::agent
