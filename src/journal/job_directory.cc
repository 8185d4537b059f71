#include "journal/job_directory.h"

#include <dirent.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "journal/codec.h"
#include "journal/files.h"

namespace aimaster {
namespace {

using Path = std::filesystem::path;

constexpr size_t kSpecMaxBytes = 16 << 20, kSmallFileMaxBytes = 4096;
constexpr size_t kTokenBytes = 32;

std::string CannotWrite(const Path& where, const std::string& why) {
  return "cannot write in " + where.string() + ": " + why +
         "; set AIMASTER_HOME to a directory of yours with free space";
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

Result<JobDirectory> JobDirectory::Create(const Home& home, const JobSpec& spec) {
  std::error_code error;
  std::filesystem::create_directories(home.jobs(), error);
  if (error) return Fail(ErrorKind::kEnvironment, CannotWrite(home.path(), error.message()));

  const Path whole = home.jobs() / spec.id.text(), half = home.jobs() / ("." + spec.id.text() + ".new");
  if (mkdir(half.c_str(), 0700) != 0)
    return Fail(ErrorKind::kEnvironment, CannotWrite(home.jobs(), std::strerror(errno)));
  const auto give_up = [&](const std::string& why) {
    std::error_code ignored;
    std::filesystem::remove_all(half, ignored);
    return Fail(ErrorKind::kEnvironment, CannotWrite(home.path(), why));
  };
  const Result<std::string> token = RandomToken();
  if (!token) return give_up(token.error().message);
  const JobDirectory directory(half);
  if (const Status ok = WriteFileAtomically(directory.spec(), EncodeJobSpec(spec), 0600); !ok) {
    return give_up(ok.error().message);
  }
  if (const Status ok = WriteFileAtomically(directory.token(), *token, 0600); !ok) return give_up(ok.error().message);
  if (mkdir(directory.supervisor().c_str(), 0700) != 0 || mkdir((half / "nodes").c_str(), 0700) != 0 ||
      rename(half.c_str(), whole.c_str()) != 0) {
    return give_up(std::strerror(errno));
  }
  return JobDirectory(whole);
}

Result<JobDirectory> JobDirectory::Open(const Path& where) {
  std::error_code error;
  const Path absolute = std::filesystem::absolute(where, error);
  JobDirectory directory(absolute);
  if (error || access(directory.spec().c_str(), F_OK) != 0) {
    return Fail(ErrorKind::kNotFound, where.string() + " is not the directory of a job: it has no spec.json");
  }
  return directory;
}

Path JobDirectory::attempt(std::string_view node, std::string_view instance, Attempt number) const {
  return path_ / "nodes" / node / instance / std::to_string(Value(number));
}

Result<JobSpec> JobDirectory::ReadSpec() const {
  Result<std::string> text = ReadFile(spec(), kSpecMaxBytes);
  if (!text) return std::unexpected(text.error());
  Result<JobSpec> decoded = DecodeJobSpec(*text);
  if (!decoded) return Fail(decoded.error().kind, spec().string() + ": " + decoded.error().message);
  return decoded;
}

Result<std::string> JobDirectory::ReadToken() const { return ReadFile(token(), kSmallFileMaxBytes); }

Result<MasterAddress> JobDirectory::ReadMasterAddress() const {
  const Result<std::string> text = ReadFile(path_ / "master.json", kSmallFileMaxBytes);
  if (!text) return std::unexpected(text.error());
  const json parsed = json::parse(*text, nullptr, /*allow_exceptions=*/false);
  MasterAddress address;
  if (!parsed.is_object() || !JsonReader::Decode(parsed.value("host", json()), address.host).empty() ||
      !JsonReader::Decode(parsed.value("port", json()), address.port).empty() ||
      !JsonReader::Decode(parsed.value("pid", json()), address.pid).empty() ||
      !JsonReader::Decode(parsed.value("start_ticks", json()), address.start_ticks).empty() ||
      !JsonReader::Decode(parsed.value("epoch", json()), address.epoch).empty()) {
    return Fail(ErrorKind::kEnvironment, (path_ / "master.json").string() + " is damaged");
  }
  return address;
}

Status JobDirectory::WriteMasterAddress(const MasterAddress& address) const {
  const json encoded{{"host", address.host},
                     {"port", address.port},
                     {"pid", address.pid},
                     {"start_ticks", address.start_ticks},
                     {"epoch", Value(address.epoch)}};
  return WriteFileAtomically(path_ / "master.json", ToText(encoded), 0600);
}

Result<MasterAddress> JobDirectory::FindLiveMaster() const {
  Result<MasterAddress> address = ReadMasterAddress();
  if (!address) return address;
  if (ProcessStartTicks(address->pid) != address->start_ticks) {
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

Result<JobDirectory> FindJob(const Home& home, std::string_view text) {
  if (JobId::Parse(text)) {
    Result<JobDirectory> exact = JobDirectory::Open(home.jobs() / text);
    if (exact) return exact;
  }
  std::vector<JobDirectory> matches;
  std::string names;
  for (const Path& where : JobDirectoriesOf(home)) {
    const Result<JobDirectory> directory = JobDirectory::Open(where);
    if (!directory || text.empty()) continue;
    const bool by_prefix = text.size() >= 4 && where.filename().string().starts_with(text);
    if (!by_prefix) {
      const Result<JobSpec> spec = directory->ReadSpec();
      if (!spec || spec->name != text) continue;
    }
    matches.push_back(*directory);
    if (matches.size() <= 5) names += (names.empty() ? "" : ", ") + where.filename().string();
  }
  if (matches.size() == 1) return matches.front();
  const std::string quoted = "'" + std::string(text.substr(0, 64)) + "'";
  if (matches.empty()) {
    return Fail(ErrorKind::kNotFound,
                "no job " + quoted + " in " + home.path().string() + "; `aimaster list` shows all");
  }
  return Fail(ErrorKind::kUsage, quoted + " names " + std::to_string(matches.size()) + " jobs (" + names +
                                     (matches.size() > 5 ? ", …" : "") + "); give the id");
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
  if (begin >= stat.size() || stat[name_end + 2] == 'Z') return 0;
  return std::strtoull(stat.c_str() + begin, nullptr, 10);
}

}  // namespace aimaster
