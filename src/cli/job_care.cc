#include "cli/job_care.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/launch_master.h"
#include "cli/master_call.h"
#include "cli/text.h"
#include "core/count.h"

namespace aimaster::cli {
namespace {

namespace fs = std::filesystem;

// By a signal, or by a debugger.
bool IsStopped(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string stat((std::istreambuf_iterator<char>(file)), {});
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= stat.size()) return false;
  return stat[name_end + 2] == 'T' || stat[name_end + 2] == 't';
}

std::string Stopped(const std::string& whose, int pid) {
  const std::string number = std::to_string(pid);
  return whose + ", process " + number + ", is stopped: `kill -CONT " + number + "` lets it go on";
}

std::string LogEnd(const fs::path& job_directory) {
  const std::string said = LastLogLine(job_directory);
  return said.empty() ? "" : "; its log ends with: " + said;
}

std::string WithoutMaster(const JobDirectory& directory, const std::optional<ProcessIdentity>& supervisor) {
  const std::string resume = "`aimaster resume " + directory.path().filename().string() + "`";
  if (!supervisor) return "no master runs, and nobody starts one: " + resume + LogEnd(directory.path());
  if (IsStopped(supervisor->pid)) return "no master runs; " + Stopped("its supervisor", supervisor->pid);
  return "no master runs; its supervisor, process " + std::to_string(supervisor->pid) + ", tries again and again" +
         LogEnd(directory.path());
}

std::string OfSilentMaster(const JobDirectory& directory, int pid, bool supervised, const std::string& why) {
  const std::string number = std::to_string(pid);
  if (IsStopped(pid)) return Stopped("its master", pid);
  return "its master, process " + number + ", does not answer (" + OneLine(why) + "): `kill -9 " + number +
         (supervised ? "` has it started again"
                     : "` and `aimaster resume " + directory.path().filename().string() + "` start another one");
}

// The process that holds the whole file locked; 0: none, or none that can be seen from here.
int LockHolder(const fs::path& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return 0;
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const bool held = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  close(fd);
  return held ? lock.l_pid : 0;
}

std::vector<fs::path> DirectoriesIn(const fs::path& where) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(where, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored)) found.push_back(entry->path());
  }
  return found;
}

std::string Process(const std::string& whose, int pid) { return whose + " (process " + std::to_string(pid) + ")"; }

// A node's agent on this machine.
struct LocalAgent {
  std::string whose;  // "its agent of node-0"
  int pid = 0;
};

std::vector<LocalAgent> FindAgents(const JobDirectory& directory) {
  std::vector<LocalAgent> agents;
  for (const fs::path& node : DirectoriesIn(directory.nodes())) {
    const int pid = LockHolder(node / "agent.lock");
    if (pid > 0) agents.push_back({"its agent of " + OneLine(node.filename().string()), pid});
  }
  return agents;
}

// What keeps others than the master from doing their part.
std::string NoteOn(const JobDirectory& directory, const std::optional<ProcessIdentity>& supervisor) {
  if (!supervisor) {
    return "its supervisor is gone, so nobody would start its master again: `aimaster resume " +
           directory.path().filename().string() + "` starts one";
  }
  if (IsStopped(supervisor->pid)) return Stopped("its supervisor", supervisor->pid);
  for (const LocalAgent& agent : FindAgents(directory)) {
    if (IsStopped(agent.pid)) return Stopped(agent.whose, agent.pid);
  }
  return "";
}

}  // namespace

JobCare LookAtCare(const JobDirectory& directory, std::chrono::milliseconds answer_max) {
  JobCare care;
  care.supervisor = LiveSupervisor(directory.path());
  if (const Result<MasterAddress> master = directory.FindLiveMaster()) care.master = *master;
  if (!care.master) {
    care.trouble = WithoutMaster(directory, care.supervisor);
    return care;
  }
  const Result<std::string> answer = AskMaster(directory.path(), "/api/v1/status", answer_max);
  if (!answer) {
    care.trouble = OfSilentMaster(directory, care.master->pid, care.supervisor.has_value(), answer.error().message);
    return care;
  }
  care.leads = true;
  const nlohmann::json status = nlohmann::json::parse(*answer, nullptr, /*allow_exceptions=*/false);
  if (status.is_object() && status.contains("trouble") && status["trouble"].is_string()) {
    care.trouble = OneLine(status["trouble"].get<std::string>());
  }
  care.note = NoteOn(directory, care.supervisor);
  return care;
}

std::string ListeningText(const MasterAddress& master, const JobSpec& spec) {
  // The address in master.json is the one to dial, which for a master that listens everywhere is another.
  const std::string& host = spec.listen_address.empty() ? master.host : spec.listen_address;
  std::string text =
      (host.find(':') != std::string::npos ? "[" + host + "]" : host) + ":" + std::to_string(master.port);
  if (!master.tls_fingerprint.empty()) text += ", TLS, certificate SHA-256 " + master.tls_fingerprint;
  return text;
}

LivingParts FindLivingParts(const JobDirectory& directory) {
  LivingParts parts;
  if (const Result<MasterAddress> master = directory.FindLiveMaster()) {
    parts.processes.push_back(Process("its master", master->pid));
  }
  if (const std::optional<ProcessIdentity> supervisor = LiveSupervisor(directory.path())) {
    parts.processes.push_back(Process("its supervisor", supervisor->pid));
  }
  for (const LocalAgent& agent : FindAgents(directory)) parts.processes.push_back(Process(agent.whose, agent.pid));
  for (const fs::path& node : DirectoriesIn(directory.nodes())) {
    for (const fs::path& instance : DirectoriesIn(node)) {
      for (const fs::path& attempt : DirectoriesIn(instance)) parts.instances += LockHolder(attempt / "lock") > 0;
    }
  }
  return parts;
}

std::string Describe(const LivingParts& parts) {
  std::vector<std::string> all = parts.processes;
  if (parts.instances > 0) all.push_back(Count(parts.instances, "instance"));
  if (all.empty()) return "nothing of it";
  std::string text = all.front();
  for (size_t i = 1; i < all.size(); ++i) text += (i + 1 == all.size() ? " and " : ", ") + all[i];
  return text;
}

}  // namespace aimaster::cli
