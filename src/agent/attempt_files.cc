#include "agent/attempt_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "agent/error_file.h"
#include "agent/limits.h"
#include "agent/small_file.h"
#include "shim/launch_format.h"

namespace aimaster::agent {
namespace {

using nlohmann::json;

// Reads members of one JSON object; remembers whether any was missing or of another type.
class Members {
 public:
  explicit Members(const json& object) : object_(object), good_(object.is_object()) {}

  template <typename Number>
  Number Int(const char* name) {
    const json* value = Find(name);
    if (value == nullptr || !value->is_number_integer()) return Bad<Number>();
    const bool is_negative = !value->is_number_unsigned() && value->get<int64_t>() < 0;
    if (is_negative ? !std::in_range<Number>(value->get<int64_t>()) : !std::in_range<Number>(value->get<uint64_t>())) {
      return Bad<Number>();
    }
    return is_negative ? static_cast<Number>(value->get<int64_t>()) : static_cast<Number>(value->get<uint64_t>());
  }
  std::string Text(const char* name) {
    const json* value = Find(name);
    return value != nullptr && value->is_string() ? value->get<std::string>() : Bad<std::string>();
  }
  bool Bool(const char* name) {
    const json* value = Find(name);
    return value != nullptr && value->is_boolean() ? value->get<bool>() : Bad<bool>();
  }
  const json& Array(const char* name) {
    static const json empty = json::array();
    const json* value = Find(name);
    if (value != nullptr && value->is_array() && value->size() <= kRanksPerInstanceMax) return *value;
    good_ = false;
    return empty;
  }
  const json& Object(const char* name) {
    static const json none;
    const json* value = Find(name);
    return value != nullptr ? *value : none;
  }
  bool Has(const char* name) const {
    const json* value = Find(name);
    return value != nullptr && !value->is_null();
  }
  bool good() const { return good_; }

 private:
  const json* Find(const char* name) const {
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }
  template <typename T>
  T Bad() {
    good_ = false;
    return T{};
  }

  const json& object_;
  bool good_;
};

json Parse(std::string_view text) {
  if (text.size() > kSmallFileMaxBytes) return {};
  return json::parse(text, nullptr, false);
}

std::string Format(const json& object) { return object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n"; }

std::optional<ProcessIdentity> ParseProcess(const json& object) {
  Members members(object);
  const ProcessIdentity process{members.Int<pid_t>("pid"), members.Int<uint64_t>("start_ticks")};
  return members.good() ? std::optional(process) : std::nullopt;
}

template <typename Parser>
auto Read(const std::string& path, Parser parser)
    -> Document<typename decltype(parser(std::string_view()))::value_type> {
  const auto text = ReadWhole(path, kSmallFileMaxBytes);
  if (!text) return std::unexpected(WhyUnread(text.error()));
  auto parsed = parser(*text);
  if (!parsed) return std::unexpected(Unread::kGarbage);
  return std::move(*parsed);
}

}  // namespace

Unread WhyUnread(int error) {
  if (MeansAbsent(error)) return Unread::kAbsent;
  // Too long, or no file at all: it will not become one by waiting.
  return error == EFBIG || error == EISDIR || error == ELOOP ? Unread::kGarbage : Unread::kUnreadable;
}

std::string FormatClaim(const Claim& claim) {
  json ranks = json::array();
  for (const ClaimedRank& rank : claim.ranks) ranks.push_back({{"rank", rank.rank}, {"local", rank.local}});
  return Format({{"job", claim.job_id},
                 {"instance", claim.instance_name},
                 {"instance_index", claim.key.instance},
                 {"attempt", claim.key.attempt},
                 {"round", claim.round},
                 {"epoch", claim.epoch},
                 {"boot_id", claim.boot_id},
                 {"log_directory", claim.log_directory},
                 {"ranks", std::move(ranks)}});
}

std::optional<Claim> ParseClaim(std::string_view text) {
  const json object = Parse(text);
  Members members(object);
  Claim claim;
  claim.key = {members.Int<uint32_t>("instance_index"), members.Int<uint32_t>("attempt")};
  claim.job_id = members.Text("job");
  claim.instance_name = members.Text("instance");
  claim.round = members.Int<uint32_t>("round");
  claim.epoch = members.Int<uint64_t>("epoch");
  claim.boot_id = members.Text("boot_id");
  claim.log_directory = members.Text("log_directory");
  for (const json& entry : members.Array("ranks")) {
    Members rank(entry);
    claim.ranks.push_back({rank.Int<uint32_t>("rank"), rank.Int<uint32_t>("local")});
    if (!rank.good()) return std::nullopt;
  }
  return members.good() ? std::optional(claim) : std::nullopt;
}

std::string FormatTombstone(const AttemptKey& key) {
  return Format({{"instance_index", key.instance}, {"attempt", key.attempt}});
}

std::optional<AttemptKey> ParseTombstone(std::string_view text) {
  const json object = Parse(text);
  Members members(object);
  const AttemptKey key{members.Int<uint32_t>("instance_index"), members.Int<uint32_t>("attempt")};
  return members.good() ? std::optional(key) : std::nullopt;
}

std::optional<Started> ParseStarted(std::string_view text) {
  const json object = Parse(text);
  Members members(object);
  Started started;
  const auto shim = ParseProcess(members.Object("shim"));
  started.boot_id = members.Text("boot_id");
  started.session = members.Int<pid_t>("session");
  for (const json& entry : members.Array("ranks")) {
    Members rank(entry);
    // A rank whose program could not be executed may have no process; its exit file says the rest.
    if (!rank.Has("pid")) continue;
    const auto process = ParseProcess(entry);
    started.ranks.push_back(
        {{rank.Int<uint32_t>("rank"), rank.Int<uint32_t>("local")}, process.value_or(ProcessIdentity{})});
    if (!process || !rank.good()) return std::nullopt;
  }
  if (!shim || !members.good()) return std::nullopt;
  started.shim = *shim;
  return started;
}

std::optional<RankExitFile> ParseRankExit(std::string_view text) {
  const json object = Parse(text);
  Members members(object);
  RankExitFile exit;
  if (members.Has("code")) exit.code = members.Int<int32_t>("code");
  if (members.Has("signal")) exit.signal = members.Int<int32_t>("signal");
  if (members.Has("core")) exit.core = members.Bool("core");
  if (members.Has("stopped_by_us")) exit.stopped_by_us = members.Bool("stopped_by_us");
  if (members.Has("exec_error")) exit.exec_error = SafeText(members.Text("exec_error"));
  if (members.Has("exec_errno")) exit.exec_errno = members.Int<int32_t>("exec_errno");
  if (members.Has("orphaned_ms")) exit.orphaned_ms = members.Int<int64_t>("orphaned_ms");
  exit.time_ns = members.Int<int64_t>("time_ns");
  if (members.Has("monotonic_ns")) exit.monotonic_ns = members.Int<int64_t>("monotonic_ns");
  if (!members.good() || exit.code.has_value() == exit.signal.has_value()) return std::nullopt;
  return exit;
}

int64_t ExitTimeNs(const RankExitFile& exit, Moment now) {
  const int64_t monotonic = now.monotonic.since_origin.count();
  if (exit.monotonic_ns <= 0 || exit.monotonic_ns > monotonic) return exit.time_ns;
  return now.wall.since_epoch.count() - (monotonic - exit.monotonic_ns);
}

std::map<uint32_t, RankExitFile> ParseKeptExits(std::string_view pages) {
  std::map<uint32_t, RankExitFile> exits;
  for (; !pages.empty(); pages.remove_prefix(std::min<size_t>(pages.size(), kShimExitFileBytes))) {
    std::string_view page = pages.substr(0, kShimExitFileBytes);
    page = page.substr(0, page.find('\0'));
    const json object = Parse(page);
    Members members(object);
    const auto local = members.Int<uint32_t>("local");
    if (const auto exit = ParseRankExit(page); exit && members.good()) exits[local] = *exit;
  }
  return exits;
}

std::map<uint32_t, RankExitFile> ReadKeptExits(pid_t shim) {
  const std::string folder = "/proc/" + std::to_string(shim) + "/fd";
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code unreadable;
    const std::string target = std::filesystem::read_symlink(entry->path(), unreadable);
    if (target.starts_with("/memfd:" AIMASTER_KEPT_EXITS)) {
      return ParseKeptExits(
          ReadSmallFile(entry->path(), size_t{kLaunchMaxRanks} * kShimExitFileBytes).value_or(std::string()));
    }
  }
  return {};
}

std::string FormatEnded(const Ended& ended, int64_t time_ns) {
  return Format({{"time_ns", time_ns}, {"lost", ended.lost_reason}});
}

std::optional<Ended> ParseEnded(std::string_view text) {
  const json object = Parse(text);
  if (!object.is_object()) return std::nullopt;
  Members members(object);
  return Ended{members.Has("lost") ? SafeText(members.Text("lost")) : ""};
}

std::vector<ProcessIdentity> ParseDescendants(std::string_view text) {
  std::vector<ProcessIdentity> found;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const char* const line_end = text.data() + end;
    ProcessIdentity process;
    const auto pid = std::from_chars(text.data(), line_end, process.pid);
    if (pid.ec == std::errc{} && pid.ptr != line_end && *pid.ptr == ' ' && process.pid > 1) {
      const auto ticks = std::from_chars(pid.ptr + 1, line_end, process.start_ticks);
      if (ticks.ec == std::errc{} && ticks.ptr == line_end) found.push_back(process);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return found;
}

std::string AttemptDirectory::RankFile(uint32_t local, std::string_view extension) const {
  return File("rank" + std::to_string(local) + std::string(extension));
}

Document<Claim> AttemptDirectory::ReadClaim() const { return Read(File("claim.json"), ParseClaim); }
Document<AttemptKey> AttemptDirectory::ReadTombstone() const {
  return Read(File(AIMASTER_FILE_TOMBSTONE), ParseTombstone);
}
Document<Started> AttemptDirectory::ReadStarted() const { return Read(File(AIMASTER_FILE_STARTED), ParseStarted); }
std::optional<RankExitFile> AttemptDirectory::ReadRankExit(uint32_t local) const {
  auto exit = Read(RankFile(local, ".exit.json"), ParseRankExit);
  return exit ? std::optional(std::move(*exit)) : std::nullopt;
}
Document<Ended> AttemptDirectory::ReadEnded() const { return Read(File(AIMASTER_FILE_ENDED), ParseEnded); }
std::vector<ProcessIdentity> AttemptDirectory::ReadDescendants() const {
  return ParseDescendants(ReadSmallFile(File(AIMASTER_FILE_DESCENDANTS), kSmallFileMaxBytes).value_or(""));
}

bool AttemptDirectory::HasTombstone() const { return FileExists(File(AIMASTER_FILE_TOMBSTONE)); }

Status AttemptDirectory::WriteTombstone(const AttemptKey& key) const {
  if (const Status made = MakeDirectories(path_); !made) return made;
  return WriteSmallFile(File(AIMASTER_FILE_TOMBSTONE), FormatTombstone(key));
}

bool AttemptDirectory::HasBegun() const {
  if (FileExists(File(AIMASTER_FILE_STARTED))) return true;
  const auto names = ListDirectory(path_);
  if (!names) return !MeansAbsent(names.error());
  return std::ranges::any_of(*names, [](const std::string& name) {
    return name.starts_with("rank") && name.find(".exit.") != std::string::npos;
  });
}

ShimLock AttemptDirectory::Lock() const {
  using enum ShimLock::State;
  const int fd = ::open(File(AIMASTER_FILE_LOCK).c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return MeansAbsent(errno) ? ShimLock{} : ShimLock{kUnknown, 0, errno};
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const int error = ::fcntl(fd, F_GETLK, &lock) == 0 ? 0 : errno;
  ::close(fd);
  if (error != 0) return {kUnknown, 0, error};
  if (lock.l_type == F_UNLCK) return {};
  return {kHeld, std::max<pid_t>(lock.l_pid, 0)};
}

}  // namespace aimaster::agent
