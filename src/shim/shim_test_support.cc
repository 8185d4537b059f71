#include "shim/shim_test_support.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <system_error>
#include <thread>

#include "shim/launch_format.h"

namespace aimaster::shim_test {

using namespace std::chrono_literals;

bool Eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

std::string ShimPath() {
  const char* bin = std::getenv("AIMASTER_BIN");
  return bin ? std::string(bin) + "/aimaster-shim"
             : (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "../bin/aimaster-shim").string();
}

std::string ActorPath() {
  static const std::string path =
      (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "shim_test_actor").string();
  return path;
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool Lives(pid_t pid) {
  const std::string stat = ReadFile("/proc/" + std::to_string(pid) + "/stat");
  const size_t end = stat.rfind(')');
  return end != std::string::npos && stat.size() > end + 2 && stat[end + 2] != 'Z' && stat[end + 2] != 'X';
}

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "shim_test.XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::system_error(errno, std::generic_category(), name);
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Child::Child(const std::vector<std::string>& argv, const std::filesystem::path& messages,
             std::function<void()> prepare) {
  std::vector<char*> pointers;
  for (const std::string& argument : argv) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    dup2(open(messages.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), STDERR_FILENO);
    if (prepare) prepare();
    execv(pointers[0], pointers.data());
    _exit(99);
  }
}

Child::~Child() {
  if (Ended()) return;
  kill(pid_, SIGQUIT);
  if (Wait() == -1) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

void Child::Signal(int signal) const { kill(pid_, signal); }

bool Child::Ended() {
  if (!ended_) ended_ = waitpid(pid_, &status_, WNOHANG) != 0;
  return ended_;
}

int Child::Wait() {
  if (!Eventually([this] { return Ended(); })) return -1;
  return WIFSIGNALED(status_) ? 128 + WTERMSIG(status_) : WEXITSTATUS(status_);
}

void AttemptDirectory::WriteLaunch(const std::vector<RankSpec>& ranks, int stop_grace_ms) const {
  std::string bytes;
  const auto add = [&bytes](const std::string& string) { bytes.append(string).push_back('\0'); };
  add(AIMASTER_LAUNCH_VERSION);
  add("instance=dlc0000000000000-worker-0");
  add("attempt=0");
  add("stop_grace_ms=" + std::to_string(stop_grace_ms));
  add("log_dir=" + path().string());
  if (!lease.empty()) {
    add("lease=" + lease.string());
    add("orphan_timeout_ms=" + std::to_string(orphan_timeout_ms));
  }
  add("ranks=" + std::to_string(ranks.size()));
  for (size_t local = 0; local < ranks.size(); ++local) {
    const RankSpec& rank = ranks[local];
    add("rank=" + std::to_string(10 + local));
    add("local=" + std::to_string(local));
    add("cwd=" + (rank.cwd.empty() ? path().string() : rank.cwd));
    add("argc=" + std::to_string(rank.argv.size()));
    for (const std::string& argument : rank.argv) add(argument);
    add("envc=" + std::to_string(rank.environment.size()));
    for (const std::string& variable : rank.environment) add(variable);
  }
  add(AIMASTER_LAUNCH_END);
  std::ofstream(*this / AIMASTER_FILE_LAUNCH, std::ios::binary) << bytes;
}

void AttemptDirectory::WriteLaunchOf(const std::vector<std::vector<std::string>>& commands, int stop_grace_ms) const {
  std::vector<RankSpec> ranks;
  for (const auto& command : commands) ranks.push_back({.argv = command});
  WriteLaunch(ranks, stop_grace_ms);
}

int AttemptDirectory::Run() const { return Child(ShimCommand(), *this / "shim.log").Wait(); }

bool AttemptDirectory::Has(const std::string& name) const { return std::filesystem::exists(*this / name); }

nlohmann::json AttemptDirectory::Json(const std::string& name) const {
  return nlohmann::json::parse(ReadFile(*this / name), nullptr, false);
}

nlohmann::json AttemptDirectory::Exit(int local) const { return Json("rank" + std::to_string(local) + ".exit.json"); }

std::string AttemptDirectory::Output(int local) const {
  return ReadFile(*this / ("rank" + std::to_string(local) + ".out"));
}

std::string AttemptDirectory::Messages() const { return ReadFile(*this / "shim.log"); }

namespace {

// An ordinary user becomes root of a user namespace, where nobody else exists.
void BecomeRootInside(uid_t uid, gid_t gid) {
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << "0 " << uid << " 1";
  std::ofstream("/proc/self/gid_map") << "0 " << gid << " 1";
}

}  // namespace

std::string InPidNamespace(const std::function<std::string()>& story) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "no pipe";
  const uid_t uid = geteuid();
  const gid_t gid = getegid();
  const int flags = CLONE_NEWPID | CLONE_NEWNS | (uid == 0 ? 0 : CLONE_NEWUSER);
  const pid_t pid = static_cast<pid_t>(syscall(SYS_clone, flags | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (pid == 0) {
    std::string result = kNoNamespace;
    if (uid != 0) BecomeRootInside(uid, gid);
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
        mount("proc", "/proc", "proc", 0, nullptr) == 0) {
      result = story();
    }
    _exit(write(ends[1], result.data(), result.size()) == static_cast<ssize_t>(result.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string result = pid < 0 ? kNoNamespace : "";
  char buffer[4096];
  for (ssize_t got; pid > 0 && (got = read(ends[0], buffer, sizeof buffer)) > 0;) {
    result.append(buffer, static_cast<size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  if (pid > 0 && (waitpid(pid, &status, 0) != pid || status != 0)) result += " (the namespace ended badly)";
  return result;
}

int OtherProcesses() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") == std::string::npos && name != std::to_string(getpid())) ++count;
  }
  return count;
}

}  // namespace aimaster::shim_test
