#include "agent/mpi_launch.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>
#include <vector>

#include "agent/limits.h"
#include "agent/small_file.h"
#include "shim/mpi_rank.h"

namespace aimaster::agent {
namespace {

constexpr const char* kFolder = "mpi";
constexpr const char* kLauncherMark = "mpi/launcher";
constexpr const char* kIsMpirun = "mpirun";  // in that file: the instance's own process is one
constexpr const char* kStationMark = "mpi/station";
constexpr const char* kOpenMpiHosts = "mpi/hosts.openmpi";
constexpr const char* kHydraHosts = "mpi/hosts.hydra";

constexpr int kUnfinishedCode = 1;  // that of an instance for a rank that left too early, whatever mpirun says

using Environment = std::map<std::string, std::string>;
using Files = std::map<std::string, std::string>;

// What MPI libraries read. OpenMPI 4 and its successor have different names for the same settings.
void SetStarters(const std::string& programs, Environment& environment) {
  const std::string parent = programs + "/aimaster-shim " AIMASTER_MPI_RANK_OPTION;
  for (const char* name : {"OMPI_MCA_orte_fork_agent", "PRTE_MCA_prte_fork_agent"}) {
    environment.try_emplace(name, parent);
  }
  // Also for the host of mpirun itself: only so the proxy there has our hook (shim/hydra_ranks.c).
  environment["HYDRA_LAUNCHER"] = "rsh";
  environment["HYDRA_LAUNCHER_EXEC"] = programs + "/aimaster-mpi";
  environment["HYDRA_LAUNCHER_AUTOFORK"] = "0";
  // Also where the job has one host: whoever names another one in the command is told so, in place of an ssh that would
  // start what nobody stops.
  environment["OMPI_MCA_plm"] = "rsh";
  environment["PRTE_MCA_plm"] = "ssh";
  environment["OMPI_MCA_plm_rsh_agent"] = environment["PRTE_MCA_plm_ssh_agent"] = programs + "/aimaster-mpi";
  // Each daemon is asked for by mpirun alone, and stays the child of whom it was asked of.
  environment["OMPI_MCA_plm_rsh_no_tree_spawn"] = environment["PRTE_MCA_plm_ssh_no_tree_spawn"] = "1";
  environment["OMPI_MCA_orte_leave_session_attached"] = environment["PRTE_MCA_prte_leave_session_attached"] = "1";
}

void SetStations(const v1::MpiLauncher& launcher, Environment& environment) {
  std::string stations;
  for (const v1::MpiHost& host : launcher.hosts()) {
    if (!host.is_local()) stations += (stations.empty() ? "" : " ") + host.address();
  }
  environment["AIMASTER_MPI_STATIONS"] = stations;
  environment["AIMASTER_MPI_PORT"] = std::to_string(launcher.port());
}

void SetHosts(const v1::MpiLauncher& launcher, const AttemptDirectory& directory, Environment& environment,
              Files& files) {
  if (launcher.hosts().empty()) return;
  for (const v1::MpiHost& host : launcher.hosts()) {
    const bool is_alone = host.is_local() && launcher.hosts_size() == 1;
    const std::string name = is_alone ? "localhost" : host.address();
    files[kOpenMpiHosts] += name + " slots=" + std::to_string(host.slots()) + "\n";
    files[kHydraHosts] += name + ":" + std::to_string(host.slots()) + "\n";
  }
  environment["OMPI_MCA_orte_default_hostfile"] = environment["PRTE_MCA_prte_default_hostfile"] =
      directory.File(kOpenMpiHosts);
  environment["HYDRA_HOST_FILE"] = directory.File(kHydraHosts);
}

std::optional<uint32_t> ParseNumber(std::string_view text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

// "rank3.4711.exit.json"
std::optional<v1::MpiRank> ParseName(std::string_view name, std::string_view suffix) {
  constexpr std::string_view kPrefix = "rank";
  if (!name.starts_with(kPrefix) || !name.ends_with(suffix)) return std::nullopt;
  const size_t dot = name.find('.');
  const size_t end = name.size() - suffix.size();
  if (dot >= end) return std::nullopt;
  const auto rank = ParseNumber(name.substr(kPrefix.size(), dot - kPrefix.size()));
  const auto pid = ParseNumber(name.substr(dot + 1, end - dot - 1));
  if (!rank || !pid || *rank > kIndexMax) return std::nullopt;
  v1::MpiRank parsed;
  parsed.set_rank(*rank);
  parsed.set_pid(*pid);
  return parsed;
}

int ShellStatusOf(const RankExitFile& exit) { return exit.code ? *exit.code : 128 + exit.signal.value_or(0); }

// A script decides itself what an mpirun in it means.
bool IsMpirun(const std::vector<std::string>& command) {
  if (command.empty()) return false;
  const std::string name = command.front().substr(command.front().rfind('/') + 1);
  return name.starts_with("mpirun") || name.starts_with("mpiexec") || name.starts_with("prterun");
}

bool CountsForMpirun(const AttemptDirectory& directory) {
  return ReadSmallFile(directory.File(kLauncherMark), kSmallFileMaxBytes).value_or("") == kIsMpirun;
}

// The ends by themselves of at most kMpiExitMax before `now`, in their order. What mpirun has ended, it has ended
// because of another one.
std::vector<RankEnd> RecentEnds(const AttemptDirectory& directory, ClaimedRank rank, Monotonic now) {
  const std::string folder = directory.File(kFolder);
  std::vector<RankEnd> ends;
  for (const std::string& name : ListDirectory(folder).value_or(std::vector<std::string>{})) {
    const auto mpi_rank = ParseName(name, AIMASTER_MPI_EXIT_SUFFIX);
    const auto text = mpi_rank ? ReadSmallFile(folder + "/" + name, kSmallFileMaxBytes) : std::nullopt;
    const auto exit = text ? ParseRankExit(*text) : std::nullopt;
    if (!exit || exit->stopped_by_us) continue;
    const Duration before = now.since_origin - Duration(exit->monotonic_ns);
    if (before < Duration::zero() || before > kMpiExitMax) continue;
    ends.push_back({.rank = rank, .exit = exit, .lost_reason = {}, .mpi_rank = mpi_rank, .mpi_words = {}});
  }
  std::ranges::sort(ends, {}, [](const RankEnd& end) { return end.exit->monotonic_ns; });
  return ends;
}

bool LeftQuietly(const RankEnd& end) { return end.exit->code == 0; }

// Killed together with their parents, which nobody but mpirun does.
size_t CountKilledRanks(const AttemptDirectory& directory) {
  const auto names = ListDirectory(directory.File(kFolder)).value_or(std::vector<std::string>{});
  return static_cast<size_t>(std::ranges::count_if(
      names, [](const std::string& name) { return ParseName(name, AIMASTER_MPI_ALIVE_SUFFIX).has_value(); }));
}

// The end of a rank that left without MPI_Finalize, where mpirun has killed others because of it. The rank may have
// been on another host.
std::optional<RankEnd> FindUnfinishedRank(const AttemptDirectory& directory, const RankEnd& launcher) {
  const size_t killed = CountKilledRanks(directory);
  if (killed == 0) return std::nullopt;
  const auto ends = RecentEnds(directory, launcher.rank, Monotonic{Duration(launcher.exit->monotonic_ns)});
  const auto left = std::ranges::find_if(ends, LeftQuietly);
  const std::string others = "mpirun killed " + std::to_string(killed) + " others on this host";
  if (left == ends.end()) {
    if (launcher.exit->code != 0) return std::nullopt;  // they were killed for something else
    RankEnd end = launcher;
    end.exit->code = kUnfinishedCode;
    end.mpi_words = "an MPI rank on another host left without MPI_Finalize, so " + others;
    return end;
  }
  RankEnd end = *left;
  end.exit->code = kUnfinishedCode;
  end.mpi_words = "MPI rank " + std::to_string(end.mpi_rank->rank()) +
                  " left with exit code 0 and without MPI_Finalize, so " + others;
  return end;
}

}  // namespace

Files AddMpi(const v1::MpiPart& part, const AttemptDirectory& directory, const MpiSurroundings& surroundings,
             Launch& launch) {
  Files files;
  if (part.part_case() == v1::MpiPart::PART_NOT_SET) return files;
  if (part.has_launcher()) {
    files[kLauncherMark] = IsMpirun(launch.command) ? kIsMpirun : "";
  } else {
    files[kStationMark] = "";
  }
  if (part.has_station()) launch.command = {surroundings.programs + "/aimaster-mpi", "--station"};
  for (LaunchRank& rank : launch.ranks) {
    Environment& environment = rank.environment;
    environment[AIMASTER_MPI_DIR] = directory.File(kFolder);
    environment["AIMASTER_MPI_SHIM"] = surroundings.programs + "/aimaster-shim";
    environment["AIMASTER_MPI_TOKEN_FILE"] = surroundings.token_file;
    if (part.has_launcher()) {
      SetStarters(surroundings.programs, environment);
      SetStations(part.launcher(), environment);
      SetHosts(part.launcher(), directory, environment, files);
    } else {
      environment["AIMASTER_MPI_ADDRESS"] = part.station().address();
      environment["AIMASTER_MPI_PORT"] = std::to_string(part.station().port());
    }
  }
  return files;
}

std::optional<RankEnd> FindMpiRankEnd(const AttemptDirectory& directory, ClaimedRank rank, Monotonic now) {
  std::vector<RankEnd> ends = RecentEnds(directory, rank, now);
  std::erase_if(ends, LeftQuietly);
  // Those of one mpirun lie close together; what a script had survived before its last one is none of this.
  auto first = ends.rbegin();
  while (first != ends.rend() && std::next(first) != ends.rend() &&
         Duration(first->exit->monotonic_ns - std::next(first)->exit->monotonic_ns) <= kMpiBurstMax) {
    ++first;
  }
  return first == ends.rend() ? std::nullopt : std::optional(*first);
}

void BlameMpiRank(const AttemptDirectory& directory, RankEnd& end) {
  if (end.exit->stopped_by_us || end.exit->orphaned_ms > 0 || IsMpiStation(directory)) return;
  const bool is_well = end.exit->code == 0;
  if (is_well && !CountsForMpirun(directory)) return;
  auto blamed =
      is_well ? std::nullopt : FindMpiRankEnd(directory, end.rank, Monotonic{Duration(end.exit->monotonic_ns)});
  if (!blamed) blamed = FindUnfinishedRank(directory, end);
  if (!blamed) return;
  if (blamed->mpi_rank) blamed->mpi_rank->set_launcher_status(ShellStatusOf(*end.exit));
  end = *std::move(blamed);
}

bool HasWatchedMpiRanks(const AttemptDirectory& directory) {
  return FileExists(directory.File(std::string(kFolder) + "/" AIMASTER_MPI_WATCHED));
}

bool IsMpiStation(const AttemptDirectory& directory) { return FileExists(directory.File(kStationMark)); }

}  // namespace aimaster::agent
