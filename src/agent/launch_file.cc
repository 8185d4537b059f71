#include "agent/launch_file.h"

#include <charconv>

#include "shim/launch_format.h"

namespace aimaster::agent {
namespace {

void Put(std::string& bytes, const std::string& text) {
  bytes += text;
  bytes += '\0';
}

void Put(std::string& bytes, const char* key, const std::string& value) { Put(bytes, std::string(key) + "=" + value); }
void Put(std::string& bytes, const char* key, size_t value) { Put(bytes, key, std::to_string(value)); }

// The row of strings, each taken once; remembers whether any was not what was asked for.
class Row {
 public:
  explicit Row(std::string_view bytes) : rest_(bytes) {}

  std::string_view Next() {
    const size_t end = rest_.find('\0');
    if (end == std::string_view::npos) {
      good_ = false;
      return {};
    }
    const std::string_view string = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return string;
  }
  std::string_view Value(std::string_view key) {
    const std::string_view string = Next();
    if (string.starts_with(key) && string.substr(key.size()).starts_with('=')) return string.substr(key.size() + 1);
    good_ = false;
    return {};
  }
  uint32_t Number(std::string_view key, uint32_t max) {
    const auto number = ParseNumber<uint32_t>(Value(key));
    good_ = good_ && number && *number <= max;
    return good_ ? *number : 0;
  }
  std::vector<std::string> Strings(std::string_view count_key) {
    std::vector<std::string> strings;
    for (uint32_t i = Number(count_key, kLaunchMaxStrings); good_ && i > 0; --i) strings.emplace_back(Next());
    return strings;
  }
  bool IsAt(std::string_view start) const { return rest_.starts_with(start); }
  bool good() const { return good_; }
  bool is_over() const { return rest_.empty(); }

  template <typename Integer>
  static std::optional<Integer> ParseNumber(std::string_view text) {
    Integer number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool whole = error == std::errc{} && end == text.data() + text.size() && !text.empty();
    return whole ? std::optional(number) : std::nullopt;
  }

 private:
  std::string_view rest_;
  bool good_ = true;
};

using Header = std::map<std::string_view, std::string_view>;

// The header's keys; an empty one when there is no header.
Header ParseHeader(Row& row) {
  Header header;
  if (row.Next() != AIMASTER_LAUNCH_VERSION) return {};
  while (row.good() && !row.is_over() && !row.IsAt("rank=")) {
    const std::string_view string = row.Next();
    const size_t equals = string.find('=');
    if (equals == std::string_view::npos) return {};
    header[string.substr(0, equals)] = string.substr(equals + 1);
  }
  return header;
}

}  // namespace

std::string FormatLaunch(const Launch& launch) {
  std::string bytes;
  Put(bytes, std::string(AIMASTER_LAUNCH_VERSION));
  const Claim& claim = launch.claim;
  Put(bytes, "instance", claim.instance_name);
  Put(bytes, "instance_index", claim.key.instance);
  Put(bytes, "attempt", claim.key.attempt);
  Put(bytes, "job", claim.job_id);
  Put(bytes, "round", claim.round);
  Put(bytes, "epoch", claim.epoch);
  Put(bytes, "boot_id", claim.boot_id);
  Put(bytes, "stop_grace_ms", launch.stop_grace_ms);
  Put(bytes, "log_dir", claim.log_directory);
  if (!launch.lease.empty()) {
    Put(bytes, "lease", launch.lease);
    Put(bytes, "orphan_timeout_ms", launch.orphan_timeout_ms);
  }
  Put(bytes, "ranks", launch.ranks.size());
  for (const LaunchRank& rank : launch.ranks) {
    Put(bytes, "rank", rank.rank);
    Put(bytes, "local", rank.local);
    Put(bytes, "cwd", launch.working_directory);
    Put(bytes, "argc", launch.command.size());
    for (const std::string& argument : launch.command) Put(bytes, argument);
    Put(bytes, "envc", rank.environment.size());
    for (const auto& [name, value] : rank.environment) Put(bytes, name + "=" + value);
  }
  Put(bytes, std::string(AIMASTER_LAUNCH_END));
  return bytes;
}

std::optional<Launch> ParseLaunch(std::string_view bytes) {
  Row row(bytes);
  Header header = ParseHeader(row);
  const auto instance = Row::ParseNumber<uint32_t>(header["instance_index"]);
  const auto attempt = Row::ParseNumber<uint32_t>(header["attempt"]);
  const auto round = Row::ParseNumber<uint32_t>(header["round"]);
  const auto epoch = Row::ParseNumber<uint64_t>(header["epoch"]);
  const auto ranks = Row::ParseNumber<uint32_t>(header["ranks"]);
  if (!instance || !attempt || !round || !epoch || !ranks || *ranks > kLaunchMaxRanks) return std::nullopt;
  Launch launch{.claim = {.key = {*instance, *attempt},
                          .job_id = std::string(header["job"]),
                          .instance_name = std::string(header["instance"]),
                          .round = *round,
                          .epoch = *epoch,
                          .boot_id = std::string(header["boot_id"]),
                          .log_directory = std::string(header["log_dir"]),
                          .ranks = {}},
                .lease = {},
                .working_directory = {},
                .command = {},
                .ranks = {}};
  for (uint32_t i = 0; row.good() && i < *ranks; ++i) {
    LaunchRank& rank = launch.ranks.emplace_back();
    rank.rank = row.Number("rank", kLaunchMaxNumber);
    rank.local = row.Number("local", kLaunchMaxNumber);
    launch.claim.ranks.push_back({rank.rank, rank.local});
    launch.working_directory = row.Value("cwd");
    launch.command = row.Strings("argc");
    for (const std::string& variable : row.Strings("envc")) {
      const size_t equals = variable.find('=');
      if (equals != std::string::npos) rank.environment[variable.substr(0, equals)] = variable.substr(equals + 1);
    }
  }
  if (row.Next() != AIMASTER_LAUNCH_END || !row.good() || !row.is_over() || launch.ranks.empty()) return std::nullopt;
  return launch;
}

std::optional<Claim> ParseLaunchClaim(std::string_view bytes) {
  std::optional<Launch> launch = ParseLaunch(bytes);
  return launch ? std::optional(std::move(launch->claim)) : std::nullopt;
}

}  // namespace aimaster::agent
