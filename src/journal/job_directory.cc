#include "journal/job_directory.h"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <ranges>
#include <utility>

#include "core/quote.h"
#include "journal/codec.h"
#include "journal/files.h"
#include "journal/json_fields.h"
#include "journal/plausible.h"
#include "journal/private_directory.h"

namespace aimaster {

template <typename Visitor>
void Fields(Visitor& v, MasterAddress& x) {
  v("host", x.host), v("port", x.port), v("pid", x.pid), v("start_ticks", x.start_ticks), v("epoch", x.epoch);
  v("boot_id", x.boot_id), v("node", x.node), v("tls_fingerprint", x.tls_fingerprint);
}

namespace {

using Path = std::filesystem::path;

constexpr size_t kSpecMaxBytes = 64 << 20, kSmallFileMaxBytes = 4096;
constexpr size_t kPrefixMin = 4;  // "dlc" alone would name every job
constexpr size_t kCandidatesMax = 5;
constexpr size_t kTokenBytes = 32;

std::unexpected<Error> CannotWrite(const Path& where, const std::string& why) {
  return Fail(ErrorKind::kEnvironment, "cannot write in " + where.string() + ": " + why +
                                           "; set AIMASTER_HOME to a directory of yours with free space");
}

Result<std::string> RandomToken() {
  unsigned char bytes[kTokenBytes];
  if (getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes)) {
    return Fail(ErrorKind::kEnvironment, "the kernel gives no random bytes: " + std::string(std::strerror(errno)));
  }
  std::string hex;
  for (const unsigned char byte : bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    hex.push_back(kDigits[byte >> 4]);
    hex.push_back(kDigits[byte & 15]);
  }
  return hex;
}

// One line of a file of the kernel; empty when it can't be read.
std::string FirstLine(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string BootId() { return FirstLine("/proc/sys/kernel/random/boot_id"); }

bool IsNamed(const JobDirectory& directory, std::string_view text) {
  if (text.size() >= kPrefixMin && directory.path().filename().string().starts_with(text)) return true;
  const Result<JobSpec> spec = directory.ReadSpec();
  return spec && !text.empty() && spec->name == text;
}

}  // namespace

Result<Home> Home::Find() {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  Path home;
  if (const std::string own = variable("AIMASTER_HOME"); !own.empty()) {
    home = own;
  } else if (const std::string state = variable("XDG_STATE_HOME"); !state.empty()) {
    home = Path(state) / "aimaster";
  } else if (const std::string user = variable("HOME"); !user.empty()) {
    home = Path(user) / ".local/state/aimaster";
  } else {
    return Fail(ErrorKind::kUsage, "no place for state: set AIMASTER_HOME (neither XDG_STATE_HOME nor HOME is set)");
  }
  std::error_code error;
  home = std::filesystem::absolute(home, error).lexically_normal();
  if (error) return Fail(ErrorKind::kUsage, "AIMASTER_HOME: " + error.message());
  return Home(home);
}

Status JobDirectory::Fill(const JobDirectory& directory, const JobSpec& spec, const RulesFiles* rules,
                          const std::string& notify_plan) {
  const Result<std::string> token = RandomToken();
  if (!token) return std::unexpected(token.error());
  for (const Path& made : {directory.supervisor(), directory.nodes()}) {
    if (mkdir(made.c_str(), 0700) != 0) return CannotWrite(directory.path().parent_path(), std::strerror(errno));
  }
  std::vector<std::pair<Path, std::string>> files = {{directory.spec(), EncodeJobSpec(spec)},
                                                     {directory.token(), *token}};
  if (rules != nullptr) {
    files.emplace_back(directory.rules(), rules->text);
    files.emplace_back(directory.compiled_rules(), rules->compiled);
  }
  if (!notify_plan.empty()) files.emplace_back(directory.notify_plan(), notify_plan);
  for (const auto& [file, text] : files) {
    if (const Status written = WriteFileAtomically(file, text, 0600); !written) {
      return Fail(written.error().kind, written.error().message + FileSizeLimitNote() +
                                            "; set AIMASTER_HOME to a directory of yours with free space");
    }
  }
  return {};
}

Result<JobDirectory> JobDirectory::Create(const Home& home, const JobSpec& spec, const RulesFiles* rules,
                                          const std::string& notify_plan) {
  std::error_code error;
  if (const Status made = MakePrivateDirectories(home.jobs()); !made) {
    return CannotWrite(home.path(), made.error().message);
  }

  // A directory with a dot in front is no job to anybody, so one that a crash leaves half made is never seen.
  const Path whole = home.jobs() / spec.id.text();
  const Path half = home.jobs() / ("." + spec.id.text() + "." + std::to_string(getpid()));
  std::filesystem::remove_all(half, error);
  if (mkdir(half.c_str(), 0700) != 0) return CannotWrite(home.jobs(), std::strerror(errno));
  const Status filled = Fill(JobDirectory(half), spec, rules, notify_plan);
  const bool renamed = filled && rename(half.c_str(), whole.c_str()) == 0;
  const int rename_error = errno;
  if (!renamed) {
    std::filesystem::remove_all(half, error);
    if (!filled) return std::unexpected(filled.error());
    if (rename_error == EEXIST || rename_error == ENOTEMPTY) {
      return Fail(ErrorKind::kUsage, "there is a job " + spec.id.text() + " in " + home.path().string() + " already");
    }
    return CannotWrite(home.jobs(), std::strerror(rename_error));
  }
  if (const Status synced = SyncDirectory(home.jobs()); !synced) return std::unexpected(synced.error());
  return JobDirectory(whole);
}

Result<JobDirectory> JobDirectory::Open(const Path& where) {
  std::error_code error;
  const Path absolute = std::filesystem::absolute(where, error);
  JobDirectory directory(absolute);
  if (error || access(directory.spec().c_str(), F_OK) != 0) {
    return Fail(ErrorKind::kNotFound, where.string() + " is not the directory of a job: it has no spec.json");
  }
  if (const Status is_private = CheckPrivate(absolute); !is_private) return std::unexpected(is_private.error());
  return directory;
}

Path JobDirectory::attempt(std::string_view node, std::string_view instance, Attempt number) const {
  return nodes() / node / instance / std::to_string(Value(number));
}

Result<JobSpec> JobDirectory::ReadSpec() const {
  Result<std::string> text = ReadFile(spec(), kSpecMaxBytes);
  if (!text) return std::unexpected(text.error());
  Result<JobSpec> decoded = DecodeJobSpec(*text);
  if (!decoded) return Fail(decoded.error().kind, spec().string() + ": " + decoded.error().message);
  if (decoded->id == JobId()) return Fail(ErrorKind::kEnvironment, spec().string() + ": it names no job");
  if (const Status plausible = CheckPlausible(*decoded); !plausible) {
    return Fail(plausible.error().kind, spec().string() + ": " + plausible.error().message);
  }
  return decoded;
}

Status JobDirectory::PutBack(const JobSpec& spec, const std::string& token) const {
  for (const auto& [file, text] : {std::pair(this->spec(), EncodeJobSpec(spec)), {this->token(), token}}) {
    if (access(file.c_str(), F_OK) == 0 || errno != ENOENT) continue;
    if (const Status written = WriteFileAtomically(file, text, 0600); !written) return written;
  }
  return {};
}

Result<std::string> JobDirectory::ReadToken() const { return ReadFile(token(), kSmallFileMaxBytes); }

Result<MasterAddress> JobDirectory::ReadMasterAddress() const {
  const Result<std::string> text = ReadFile(path_ / "master.json", kSmallFileMaxBytes);
  if (!text) return std::unexpected(text.error());
  const json parsed = json::parse(*text, nullptr, /*allow_exceptions=*/false);
  MasterAddress address;
  if (std::string error = JsonReader::Decode(parsed, address); !error.empty()) {
    return Fail(ErrorKind::kEnvironment, (path_ / "master.json").string() + " is damaged: " + error);
  }
  return address;
}

Status JobDirectory::WriteMasterAddress(const MasterAddress& address) const {
  MasterAddress complete = address;
  complete.boot_id = BootId();
  complete.node = FirstLine("/proc/sys/kernel/hostname");
  return WriteFileAtomically(path_ / "master.json", ToText(ToJson(complete)), 0600);
}

Result<MasterAddress> JobDirectory::FindLiveMaster() const {
  Result<MasterAddress> address = ReadMasterAddress();
  if (!address) return address;
  const bool same_boot = address->boot_id.empty() || address->boot_id == BootId();
  if (!same_boot || address->start_ticks == 0 || ProcessStartTicks(address->pid) != address->start_ticks) {
    return Fail(ErrorKind::kNotFound, "no master runs for this job");
  }
  return address;
}

std::vector<Path> JobDirectoriesOf(const Home& home) {
  std::vector<Path> directories;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(home.jobs(), error), end; !error && entry != end;
       entry.increment(error)) {
    if (JobId::Parse(entry->path().filename().string())) directories.push_back(entry->path());
  }
  return directories;
}

std::vector<JobDirectory> FindJobs(const Home& home, std::string_view text) {
  std::vector<JobDirectory> matches;
  for (const Path& where : JobDirectoriesOf(home)) {
    if (Result<JobDirectory> directory = JobDirectory::Open(where); directory && IsNamed(*directory, text)) {
      matches.push_back(std::move(*directory));
    }
  }
  std::ranges::sort(matches, {}, &JobDirectory::path);
  return matches;
}

Result<JobDirectory> FindJob(const Home& home, std::string_view text) {
  if (JobId::Parse(text)) {
    const Path where = home.jobs() / text;
    std::error_code error;
    if (std::filesystem::exists(where, error)) return JobDirectory::Open(where);
  }
  const std::vector<JobDirectory> matches = FindJobs(home, text);
  if (matches.size() == 1) return matches.front();
  if (matches.empty()) {
    return Fail(ErrorKind::kNotFound,
                "no job " + Quoted(text) + " in " + home.path().string() + "; `aimaster list` shows all");
  }
  std::string candidates;
  for (const JobDirectory& match : matches | std::views::take(kCandidatesMax)) {
    candidates += (candidates.empty() ? "" : ", ") + match.path().filename().string();
  }
  return Fail(ErrorKind::kUsage, Quoted(text) + " names " + std::to_string(matches.size()) + " jobs (" + candidates +
                                     (matches.size() > kCandidatesMax ? ", …" : "") + "); give the id");
}

uint64_t ProcessStartTicks(int pid) {
  if (pid <= 0) return 0;
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string stat(std::istreambuf_iterator<char>(file), {});
  // The name in the second field may hold anything; the fields after its last bracket can't.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return 0;
  size_t begin = name_end + 2;
  for (int field = 3; field < 22 && begin != std::string::npos && begin < stat.size(); ++field) {
    begin = stat.find(' ', begin);
    if (begin != std::string::npos) ++begin;
  }
  if (begin >= stat.size()) return 0;
  const char state = stat[name_end + 2];
  if (state == 'Z' || state == 'X') return 0;
  return std::strtoull(stat.c_str() + begin, nullptr, 10);
}

}  // namespace aimaster
