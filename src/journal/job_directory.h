// JobDirectory: where everything about a job is, and how it is found. Paths are made here and nowhere else.
//
//   $AIMASTER_HOME/jobs/<job>/
//     spec.json        what was submitted; 0600, since it holds the environment
//     token            the job's secret; 0600
//     rules.yaml       the user's own rules, as they were given, where they were
//     rules.compiled   the same as programs read them (detect/compiled_rules.h)
//     notify.json      whom to tell of what (notify/plan.h), where it was started with that; 0600: it holds secrets
//     journal.db       inputs, decisions, records
//     durable_mark     how far the journal was durable
//     master.json      where the running master listens
//     aimaster.log     the master's own log
//     stacks/          call stacks of the ranks, one file for each capture (stacks/document.h)
//     tls/pair.pem     the master's private key and certificate, where it has made them itself; 0600
//     supervisor/      the respawner's files
//     nodes/<node>/<instance>/<attempt>/    see the agent
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/ids.h"
#include "core/job_spec.h"
#include "detect/compiled_rules.h"

namespace aimaster {

// Where a master listens, and which process it is. The last two are filled in when it is written.
struct MasterAddress {
  std::string host;
  uint16_t port = 0;
  int pid = 0;
  uint64_t start_ticks = 0;  // tells the process from a later one with the same pid
  Epoch epoch{};
  std::string boot_id = {};          // and this from one on another machine, or before a reboot
  std::string node = {};             // the machine's name, for people
  std::string tls_fingerprint = {};  // of its certificate, see wire/tls.h; empty: it speaks clear text
};

// A user's own rules.
struct RulesFiles {
  std::string text;      // rules.yaml
  std::string compiled;  // rules.compiled
};

// The root of all state.
class Home {
 public:
  // $AIMASTER_HOME, else $XDG_STATE_HOME/aimaster, else ~/.local/state/aimaster. It need not exist yet.
  static Result<Home> Find();
  explicit Home(std::filesystem::path path) : path_(std::move(path)) {}
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path jobs() const { return path_ / "jobs"; }

 private:
  std::filesystem::path path_;
};

class JobDirectory {
 public:
  // Makes the directory of a new job, with its spec and a fresh token, and its own rules and plan of notifications
  // where it has some. It appears whole or not at all.
  static Result<JobDirectory> Create(const Home& home, const JobSpec& spec, const RulesFiles* rules = nullptr,
                                     const std::string& notify_plan = "");
  // The directory must exist and hold a spec.
  static Result<JobDirectory> Open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path spec() const { return path_ / "spec.json"; }
  std::filesystem::path token() const { return path_ / "token"; }
  std::filesystem::path rules() const { return path_ / "rules.yaml"; }
  std::filesystem::path compiled_rules() const { return path_ / kCompiledRulesFile; }
  std::filesystem::path notify_plan() const { return path_ / "notify.json"; }
  std::filesystem::path journal() const { return path_ / "journal.db"; }
  std::filesystem::path log() const { return path_ / "aimaster.log"; }
  std::filesystem::path tls() const { return path_ / "tls"; }
  std::filesystem::path supervisor() const { return path_ / "supervisor"; }
  std::filesystem::path stacks() const { return path_ / "stacks"; }
  std::filesystem::path nodes() const { return path_ / "nodes"; }
  std::filesystem::path attempt(std::string_view node, std::string_view instance, Attempt attempt) const;

  Result<JobSpec> ReadSpec() const;
  Result<std::string> ReadToken() const;
  Result<MasterAddress> ReadMasterAddress() const;
  Status WriteMasterAddress(const MasterAddress& address) const;
  // Writes those of spec.json and token again that are not there any more.
  Status PutBack(const JobSpec& spec, const std::string& token) const;
  // The address, if the process that wrote it still lives on this machine; kNotFound otherwise.
  Result<MasterAddress> FindLiveMaster() const;

 private:
  explicit JobDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  static Status Fill(const JobDirectory& directory, const JobSpec& spec, const RulesFiles* rules,
                     const std::string& notify_plan);

  std::filesystem::path path_;
};

// All job directories of a home, in no order.
std::vector<std::filesystem::path> JobDirectoriesOf(const Home& home);

// All jobs that `text` names, by the path.
std::vector<JobDirectory> FindJobs(const Home& home, std::string_view text);

// The job that `text` names: its id, a prefix that only it has (at least "dlc" and one letter), or a name that only it
// has. kUsage with the candidates when there are several.
Result<JobDirectory> FindJob(const Home& home, std::string_view text);

// Field 22 of /proc/<pid>/stat; 0 when there is no such process, or only its exit status is left.
uint64_t ProcessStartTicks(int pid);

}  // namespace aimaster
