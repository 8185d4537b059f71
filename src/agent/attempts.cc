#include "agent/attempts.h"

#include <dirent.h>
#include <sys/wait.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "agent/descriptor_limit.h"
#include "agent/frame_check.h"
#include "agent/launch_file.h"
#include "agent/limits.h"
#include "agent/log.h"
#include "agent/small_file.h"

namespace aimaster::agent {
namespace {

std::vector<std::string> ListDirectory(const std::string& path) {
  std::vector<std::string> names;
  DIR* const directory = ::opendir(path.c_str());
  if (directory == nullptr) return names;
  while (const dirent* entry = ::readdir(directory)) {
    if (IsSafeName(entry->d_name)) names.emplace_back(entry->d_name);
  }
  ::closedir(directory);
  std::ranges::sort(names);
  return names;
}

std::optional<uint32_t> ParseNumber(const std::string& text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

v1::AttemptId ToId(AttemptKey key) {
  v1::AttemptId id;
  id.set_instance(key.instance);
  id.set_attempt(key.attempt);
  return id;
}

AttemptKey ToKey(const v1::AttemptId& id) { return {id.instance(), id.attempt()}; }

std::string ToText(AttemptKey key) {
  return "attempt " + std::to_string(key.attempt) + " of instance " + std::to_string(key.instance);
}

// The variables by which a sweep finds what escaped; whatever else is set, these have to be true.
void SetMarkers(const Claim& claim, std::map<std::string, std::string>& environment) {
  environment["AIMASTER_JOB_ID"] = claim.job_id;
  environment["AIMASTER_INSTANCE"] = claim.instance_name;
  environment["AIMASTER_ATTEMPT"] = std::to_string(claim.key.attempt);
}

Launch MakeLaunch(const Claim& claim, const AttemptDirectory& directory, const std::string& lease,
                  const v1::StartInstance& start, const v1::JobConfig& job) {
  Launch launch{.instance_name = claim.instance_name,
                .attempt = claim.key.attempt,
                .stop_grace_ms = job.stop_grace_ms(),
                .log_directory = claim.log_directory,
                .lease = lease,
                .orphan_timeout_ms = job.orphan_timeout_ms(),
                .working_directory = job.working_directory(),
                .command = {job.command().begin(), job.command().end()},
                .ranks = {}};
  for (const v1::RankLaunch& rank : start.ranks()) {
    LaunchRank& added = launch.ranks.emplace_back(rank.rank(), rank.local());
    added.environment.insert(job.environment().begin(), job.environment().end());
    for (const auto& [name, value] : rank.environment()) added.environment[name] = value;
    added.environment.try_emplace("TORCHELASTIC_ERROR_FILE", directory.RankFile(rank.local(), ".error.json"));
    SetMarkers(claim, added.environment);
  }
  return launch;
}

}  // namespace

Attempts::Attempts(boost::asio::io_context& io, AttemptsOptions options, Callbacks callbacks)
    : io_(io), options_(std::move(options)), callbacks_(std::move(callbacks)) {}

AttemptDirectory Attempts::DirectoryOf(const std::string& instance_name, AttemptKey key) const {
  return AttemptDirectory(options_.node_directory + "/" + instance_name + "/" + std::to_string(key.attempt));
}

AttemptLife& Attempts::Add(AttemptDirectory directory, Claim claim) {
  const AttemptKey key = claim.key;
  ForgetEndedBefore(key);
  auto& place = attempts_[key];
  place = std::make_unique<AttemptLife>(*this, std::move(directory), std::move(claim));
  return *place;
}

void Attempts::ForgetEndedBefore(AttemptKey key) {
  std::erase_if(attempts_, [key](const auto& entry) {
    return entry.first.instance == key.instance && entry.first.attempt < key.attempt && entry.second->has_ended();
  });
}

void Attempts::Adopt(AttemptDirectory directory, Claim claim) {
  LogInfo("found " + ToText(claim.key) + " in " + directory.path());
  Add(std::move(directory), std::move(claim)).Adopt();
}

void Attempts::AdoptAll() {
  for (const std::string& instance : ListDirectory(options_.node_directory)) {
    std::vector<uint32_t> numbers;
    for (const std::string& name : ListDirectory(options_.node_directory + "/" + instance)) {
      if (const auto number = ParseNumber(name)) numbers.push_back(*number);
    }
    std::ranges::sort(numbers);
    for (const uint32_t number : numbers) {
      const AttemptDirectory directory = DirectoryOf(instance, {0, number});
      const bool is_last = number == numbers.back();
      const auto claim = directory.ReadClaim();
      if (claim && claim->instance_name == instance && claim->key.attempt == number) {
        if (is_last || !directory.ReadEnded()) Adopt(directory, *claim);
      } else if (const auto key = directory.ReadTombstone(); key && is_last) {
        ReportNeverStarted(*key);
      }
    }
  }
}

void Attempts::ReportNeverStarted(AttemptKey key) {
  v1::Report report;
  *report.mutable_attempt_ended()->mutable_id() = ToId(key);
  callbacks_.report(std::move(report));
}

void Attempts::Start(const v1::StartInstance& start, const v1::JobConfig& job, uint64_t epoch) {
  const AttemptKey key = ToKey(start.id());
  if (const auto found = attempts_.find(key); found != attempts_.end()) {
    found->second->ReportAll();
    return;
  }
  for (const auto& [other, life] : attempts_) {
    // The successor of a living attempt would make two of every rank; a predecessor comes too late.
    if (other.instance != key.instance || (other.attempt < key.attempt && life->has_ended())) continue;
    LogError("did not start " + ToText(key) + ": " + ToText(other) + (life->has_ended() ? " came after it" : " lives"));
    return;
  }
  const AttemptDirectory directory = DirectoryOf(start.instance_name(), key);
  if (auto claim = directory.ReadClaim()) {
    Adopt(directory, std::move(*claim));
    return;
  }
  if (directory.HasTombstone()) {
    LogInfo("did not start " + ToText(key) + ": it was stopped before");
    ReportNeverStarted(key);
    return;
  }
  Claim claim{.key = key,
              .job_id = job.job_id(),
              .instance_name = start.instance_name(),
              .round = start.round(),
              .epoch = epoch,
              .boot_id = options_.boot_id,
              .log_directory = directory.path(),
              .ranks = {}};
  const std::string& log_root = job.log_directory().empty() ? options_.log_root : job.log_directory();
  if (!log_root.empty()) {
    claim.log_directory = log_root + "/" + start.instance_name() + "/" + std::to_string(key.attempt);
  }
  for (const v1::RankLaunch& rank : start.ranks()) claim.ranks.push_back({rank.rank(), rank.local()});
  const std::string launch = FormatLaunch(MakeLaunch(claim, directory, options_.lease, start, job));
  if (Live().empty()) own_descriptors_ = CountDescriptors();
  LogInfo("starting " + ToText(key) + " (" + start.instance_name() + "), round " + std::to_string(start.round()));
  AttemptLife& life = Add(directory, std::move(claim));
  life.holds_master_port = start.holds_master_port();
  life.Start(launch);
}

// Another attempt of the same instance knows its name, should the order not.
std::string Attempts::NameOf(const v1::StopInstance& stop) const {
  if (!stop.instance_name().empty()) return stop.instance_name();
  const auto known = attempts_.lower_bound({stop.id().instance(), 0});
  if (known == attempts_.end() || known->first.instance != stop.id().instance()) return {};
  return known->second->claim().instance_name;
}

void Attempts::Stop(const v1::StopInstance& stop) {
  const AttemptKey key = ToKey(stop.id());
  LogInfo("stopping " + ToText(key) + (stop.at_once() ? " at once" : ""));
  if (const auto found = attempts_.find(key); found != attempts_.end()) {
    found->second->Stop({}, stop.at_once());
    if (found->second->has_ended()) found->second->ReportAll();
    return;
  }
  const std::string name = NameOf(stop);
  if (name.empty()) {
    LogError("cannot stop " + ToText(key) + ": nobody has said what its instance is called");
    return;
  }
  const AttemptDirectory directory = DirectoryOf(name, key);
  if (auto claim = directory.ReadClaim()) {
    Adopt(directory, std::move(*claim));
    attempts_[key]->Stop({}, stop.at_once());
    return;
  }
  if (const Status buried = directory.WriteTombstone(key); !buried) {
    // Without it a start that is still on its way would not be stopped; the master asks again.
    LogError("cannot stop " + ToText(key) + ": " + buried.error().message);
    return;
  }
  ReportNeverStarted(key);
}

void Attempts::StopAll(StopReason reason, bool at_once) {
  for (const auto& [key, life] : attempts_) life->Stop(reason, at_once);
}

void Attempts::SignalAll(int signal) {
  for (const auto& [key, life] : attempts_) life->Signal(signal);
}

bool Attempts::DrainExits() {
  bool is_waiting = false;
  for (const auto& [key, life] : attempts_) is_waiting = life->DrainExits() || is_waiting;
  return is_waiting;
}

void Attempts::ReapChildren() {
  const std::set<pid_t> shims = LiveShims();
  int status = 0;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    if (shims.contains(pid)) statuses_[pid] = status;  // the others are orphans that came to us
  }
}

std::optional<int> Attempts::WaitStatus(pid_t pid) {
  int status = 0;
  if (const auto found = statuses_.extract(pid)) return found.mapped();
  return ::waitpid(pid, &status, WNOHANG) == pid ? std::optional(status) : std::nullopt;
}

std::set<pid_t> Attempts::LiveShims() const {
  std::set<pid_t> shims;
  for (const auto& [key, life] : attempts_) {
    if (life->shim_pid() != 0) shims.insert(life->shim_pid());
  }
  return shims;
}

// An agent that runs out of them in mid-run can neither watch nor stop what it started.
Status Attempts::HasDescriptors() const {
  size_t needed = own_descriptors_ + kDescriptorsSpare;
  for (const auto& [key, life] : attempts_) {
    if (!life->has_ended()) needed += kDescriptorsPerAttempt + kDescriptorsPerRank * life->claim().ranks.size();
  }
  const size_t limit = DescriptorLimit();
  if (limit == 0 || needed <= limit) return {};
  return Fail(ErrorKind::kEnvironment,
              "the agent of this node may have " + std::to_string(limit) + " files open and would need " +
                  std::to_string(needed) +
                  " to look after what runs here; raise the hard limit of open files (ulimit -Hn)");
}

std::vector<AttemptKey> Attempts::Live() const {
  std::vector<AttemptKey> live;
  for (const auto& [key, life] : attempts_) {
    if (!life->has_ended()) live.push_back(key);
  }
  return live;
}

std::vector<LiveRank> Attempts::LiveRanks() const {
  std::vector<LiveRank> live;
  for (const auto& [key, life] : attempts_) {
    if (!life->has_ended()) life->AppendLiveRanks(live);
  }
  return live;
}

}  // namespace aimaster::agent
