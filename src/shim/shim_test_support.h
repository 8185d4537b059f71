// Drives the real shim in a directory of its own, as an agent would.
#ifndef AIMASTER_SHIM_SHIM_TEST_SUPPORT_H_
#define AIMASTER_SHIM_SHIM_TEST_SUPPORT_H_

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace aimaster::shim_test {

// Polls until `condition` holds; false when it does not within ten seconds.
bool Eventually(const std::function<bool()>& condition);

std::string ShimPath();
std::string ActorPath();
std::string ReadFile(const std::filesystem::path& path);
bool Lives(pid_t pid);  // a zombie does not

// A directory that is gone at the end of the test.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// A child of the test. The destructor ends it, with SIGKILL if it must.
class Child {
 public:
  // `prepare` runs in the child before the exec. fd 2 goes to `messages`.
  Child(const std::vector<std::string>& argv, const std::filesystem::path& messages,
        std::function<void()> prepare = {});
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal) const;
  bool Ended();
  // The exit code, 128+n for signal n; -1 when it does not end.
  int Wait();

 private:
  pid_t pid_;
  bool ended_ = false;
  int status_ = 0;
};

struct RankSpec {
  std::vector<std::string> argv;
  std::vector<std::string> environment = {"PATH=/usr/bin:/bin"};
  std::string cwd = {};  // empty: the attempt's directory
};

class AttemptDirectory {
 public:
  std::filesystem::path path() const { return directory_.path(); }
  std::filesystem::path operator/(const std::string& name) const { return directory_.path() / name; }

  // The file to watch, for launch files that are written from now on; empty: none.
  std::filesystem::path lease;
  int orphan_timeout_ms = 0;

  // Writes the launch file; ranks are numbered 10, 11, … and locals 0, 1, …
  void WriteLaunch(const std::vector<RankSpec>& ranks, int stop_grace_ms = 5000) const;
  void WriteLaunchOf(const std::vector<std::vector<std::string>>& commands, int stop_grace_ms = 5000) const;

  std::vector<std::string> ShimCommand() const { return {ShimPath(), path().string()}; }
  // Runs the shim to its end.
  int Run() const;

  bool Has(const std::string& name) const;
  nlohmann::json Json(const std::string& name) const;
  nlohmann::json Exit(int local) const;
  std::string Output(int local) const;  // of the rank, standard output
  std::string Messages() const;         // of the shim

 private:
  TemporaryDirectory directory_;
};

// Runs `story` as the first process of a new pid and mount namespace with its own /proc. It returns what went wrong, or
// "". Returns that, or "no namespace" where we may not make one.
inline constexpr const char* kNoNamespace = "no namespace";
std::string InPidNamespace(const std::function<std::string()>& story);

// How many processes /proc shows beside the caller.
int OtherProcesses();

}  // namespace aimaster::shim_test

#endif  // AIMASTER_SHIM_SHIM_TEST_SUPPORT_H_
