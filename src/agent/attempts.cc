#include "agent/attempts.h"

#include <sys/wait.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "agent/attempt_claim.h"
#include "agent/descriptor_limit.h"
#include "agent/frame_check.h"
#include "agent/launch_file.h"
#include "agent/limits.h"
#include "agent/log.h"
#include "agent/mpi_launch.h"
#include "agent/probes.h"
#include "agent/small_file.h"

namespace aimaster::agent {
namespace {

// A node's folder holds files besides the instances' folders.
Result<std::vector<std::string>> ListFolder(const std::string& path) {
  auto names = ListDirectory(path);
  if (!names && !MeansAbsent(names.error())) {
    return Fail(ErrorKind::kEnvironment,
                "cannot look for who lives here: " + path + " can't be read: " + std::strerror(names.error()));
  }
  if (!names) return std::vector<std::string>();
  std::erase_if(*names, [](const std::string& name) { return !IsSafeName(name); });
  return std::move(*names);
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
                  const std::string& socket, const v1::StartInstance& start, const v1::JobConfig& job) {
  Launch launch{.claim = claim,
                .stop_grace_ms = job.stop_grace_ms(),
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
    if (!socket.empty()) added.environment["AIMASTER_SOCKET"] = socket;
    SetMarkers(claim, added.environment);
  }
  return launch;
}

constexpr const char* kNobodyKnows = "its claim is lost or damaged, so that nobody can lead it any more";

}  // namespace

class Attempts::NamelessOwner : public AttemptOwner {
 public:
  explicit NamelessOwner(Attempts& attempts) : attempts_(attempts) {}
  boost::asio::io_context& io() override { return attempts_.io(); }
  const std::string& boot_id() const override { return attempts_.boot_id(); }
  const std::string& shim_path() const override { return attempts_.shim_path(); }
  std::set<pid_t> LiveShims() const override { return attempts_.LiveShims(); }
  Status HasDescriptors() const override { return attempts_.HasDescriptors(); }
  std::optional<int> WaitStatus(pid_t pid) override { return attempts_.WaitStatus(pid); }
  void OnRankEnded(const AttemptLife&, RankEnd&) override {}
  void ReportRankEnd(const AttemptLife&, const RankEnd&) override {}
  void Report(v1::Report) override {}
  void OnRunning(const AttemptLife&) override {}
  void OnEnded(const AttemptLife&) override { attempts_.AfterAnEnd(); }

 private:
  Attempts& attempts_;
};

Attempts::Attempts(boost::asio::io_context& io, AttemptsOptions options, Callbacks callbacks)
    : io_(io),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      nameless_owner_(std::make_unique<NamelessOwner>(*this)),
      after_an_end_timer_(io) {}

Attempts::~Attempts() = default;

AttemptDirectory Attempts::DirectoryOf(const Place& place) const {
  return AttemptDirectory(options_.node_directory + "/" + place.first + "/" + std::to_string(place.second));
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
    return entry.first.instance == key.instance && entry.first.attempt < key.attempt && entry.second->has_ended() &&
           !entry.second->owes_file();
  });
}

AttemptLife& Attempts::Adopt(AttemptDirectory directory, Claim claim) {
  LogInfo("found " + ToText(claim.key) + " in " + directory.path());
  AttemptLife& life = Add(std::move(directory), std::move(claim));
  life.Adopt();
  return life;
}

// ---- what earlier agents left ----

Status Attempts::AdoptAll(bool patient) {
  const auto lodgings = FindLodgings();
  if (!lodgings) return std::unexpected(lodgings.error());
  for (const Lodging& lodging : *lodgings) {
    if (lodging.claim || lodging.claim.error() != Unread::kUnreadable || !patient) continue;
    return Fail(ErrorKind::kEnvironment, "cannot read who lives in " + DirectoryOf(lodging.place).path());
  }
  const auto homeless = FindHomeless(*lodgings);
  if (!homeless) return std::unexpected(homeless.error());
  own_descriptors_ = CountDescriptors();
  for (const Lodging& lodging : *lodgings) TakeOver(lodging);
  for (const Place& place : *homeless) EndNameless(place);
  return {};
}

// Ranks whose attempt's directory is gone, lock and all: only they themselves still say who they are.
Result<std::vector<Attempts::Place>> Attempts::FindHomeless(const std::vector<Lodging>& lodgings) const {
  const auto living = ListMarkedAttempts(options_.job_id, options_.node_name);
  if (!living) {
    return Fail(ErrorKind::kEnvironment,
                "cannot look for who lives here: " + std::string(std::strerror(living.error())));
  }
  std::vector<Place> homeless;
  for (const Place& place : *living) {
    const auto lodging = std::ranges::find(lodgings, place, &Lodging::place);
    const bool has_home = lodging != lodgings.end() && (lodging->claim || HasLived(DirectoryOf(place)));
    if (!has_home && IsSafeName(place.first)) homeless.push_back(place);
  }
  return homeless;
}

Result<std::vector<Attempts::Lodging>> Attempts::FindLodgings() const {
  std::vector<Lodging> lodgings;
  const auto instances = ListFolder(options_.node_directory);
  if (!instances) return std::unexpected(instances.error());
  for (const std::string& instance : *instances) {
    const auto names = ListFolder(options_.node_directory + "/" + instance);
    if (!names) return std::unexpected(names.error());
    std::vector<uint32_t> numbers;
    for (const std::string& name : *names) {
      if (const auto number = ParseNumber(name)) numbers.push_back(*number);
    }
    std::ranges::sort(numbers);
    for (const uint32_t number : numbers) {
      const Place place{instance, number};
      lodgings.push_back({place, number == numbers.back(), FindClaim(DirectoryOf(place), instance, number)});
    }
  }
  return lodgings;
}

void Attempts::TakeOver(const Lodging& lodging) {
  const AttemptDirectory directory = DirectoryOf(lodging.place);
  if (!lodging.claim) {
    TakeOverDamaged(lodging);
  } else if (lodging.is_last || !directory.ReadEnded() || directory.Lock().state != ShimLock::State::kFree) {
    Adopt(directory, *lodging.claim);
  }
}

// No document says who lives there. A tombstone says at least which instance it was.
void Attempts::TakeOverDamaged(const Lodging& lodging) {
  const AttemptDirectory directory = DirectoryOf(lodging.place);
  const auto& [instance, number] = lodging.place;
  const auto key = directory.ReadTombstone();
  const bool is_known = key && key->attempt == number && key->instance != kNoInstance;
  if (!HasLived(directory)) {
    if (is_known && lodging.is_last) ReportNeverStarted(*key);
    return;
  }
  const bool is_over = directory.ReadEnded() && directory.Lock().state == ShimLock::State::kFree;
  if (is_over && !lodging.is_last) return;
  if (is_known) {
    Add(directory, MakeUpClaim(directory, *key, instance, options_.boot_id)).Condemn(kNobodyKnows);
  } else if (!is_over) {  // one that is over is told of when it is asked for
    EndNameless(lodging.place);
  }
}

void Attempts::EndNameless(const Place& place) {
  const AttemptDirectory directory = DirectoryOf(place);
  auto& life = nameless_[place] = std::make_unique<AttemptLife>(
      *nameless_owner_, directory, MakeUpClaim(directory, {kNoInstance, place.second}, place.first, options_.boot_id));
  life->Condemn(kNobodyKnows);
}

bool Attempts::HasLived(const AttemptDirectory& directory) const {
  return directory.Lock().state != ShimLock::State::kFree || directory.HasBegun() ||
         FileExists(directory.File(AIMASTER_FILE_ENDED));
}

// From inside a call of its own: it can't be destroyed here.
void Attempts::AfterAnEnd() {
  after_an_end_timer_.After(Duration::zero(), [this] {
    std::erase_if(nameless_, [](const auto& entry) { return entry.second->has_ended() && !entry.second->owes_file(); });
    if (std::ranges::any_of(nameless_, [](const auto& entry) { return entry.second->has_ended(); })) {
      after_an_end_timer_.After(kFileRetry, [this] { AfterAnEnd(); });
    }
    for (const auto& [key, order] : std::exchange(waiting_, {})) Start(order.start, order.job, order.epoch);
    callbacks_.on_nameless_ended();
  });
}

// The successor of a living attempt would make two of every rank.
bool Attempts::IsInTheWay(AttemptKey key, const Place& place) const {
  const bool nameless = std::ranges::any_of(nameless_, [&place](const auto& entry) {
    return entry.first.first == place.first && entry.first != place && !entry.second->has_ended();
  });
  return nameless || std::ranges::any_of(attempts_, [key](const auto& entry) {
           return entry.first.instance == key.instance && entry.first.attempt < key.attempt &&
                  !entry.second->has_ended();
         });
}

// Who orders a successor has given up those before it, whatever became of the order to stop them.
void Attempts::EndEarlier(AttemptKey key) {
  for (const auto& [other, life] : attempts_) {
    if (other.instance != key.instance || other.attempt >= key.attempt || life->has_ended()) continue;
    LogWarning(ToText(other) + " lives, and its successor is to start: it is ended");
    life->Stop({}, true);
  }
}

const AttemptLife* Attempts::FindLater(AttemptKey key) const {
  const auto later = attempts_.upper_bound(key);
  return later != attempts_.end() && later->first.instance == key.instance ? later->second.get() : nullptr;
}

// A master that has forgotten a part of the job's history orders what has long been. It must hear that this start will
// never come about, or it would wait for it.
void Attempts::RefuseAsTooLate(AttemptKey key, AttemptKey later) {
  LogError("did not start " + ToText(key) + ": " + ToText(later) + " came after it");
  v1::Report report;
  v1::AttemptEnded& ended = *report.mutable_attempt_ended();
  *ended.mutable_id() = ToId(key);
  ended.set_lost_reason("its node has had attempt " + std::to_string(later.attempt) +
                        " of this instance, of which the master does not know");
  callbacks_.report(std::move(report));
}

AttemptLife* Attempts::LookUp(Claim claim) {
  const Place place{claim.instance_name, claim.key.attempt};
  const AttemptDirectory directory = DirectoryOf(place);
  const bool is_nameless = nameless_.erase(place) != 0;
  if (auto found = FindClaim(directory, place.first, place.second); found && found->key == claim.key) {
    return &Adopt(directory, std::move(*found));
  }
  if (!is_nameless && !HasLived(directory)) return nullptr;
  const Claim made_up = MakeUpClaim(directory, claim.key, claim.instance_name, options_.boot_id);
  const bool may_lead = !is_nameless && !claim.ranks.empty() && directory.Lock().state != ShimLock::State::kFree;
  if (may_lead) return &Adopt(directory, std::move(claim));  // the order says it all
  claim.boot_id = made_up.boot_id;
  if (claim.ranks.empty()) claim = made_up;
  AttemptLife& life = Add(directory, std::move(claim));
  life.Condemn(kNobodyKnows);
  return &life;
}

void Attempts::OnEnded(const AttemptLife& attempt) {
  callbacks_.on_ended(attempt);
  if (!waiting_.empty()) AfterAnEnd();
}

// ---- orders ----

void Attempts::ReportNeverStarted(AttemptKey key) {
  v1::Report report;
  *report.mutable_attempt_ended()->mutable_id() = ToId(key);
  callbacks_.report(std::move(report));
}

bool Attempts::Start(const v1::StartInstance& start, const v1::JobConfig& job, uint64_t epoch) {
  const AttemptKey key = ToKey(start.id());
  const Place place{start.instance_name(), key.attempt};
  Claim claim = MakeClaim(start, job, epoch);
  AttemptLife* life = nullptr;
  if (const auto found = attempts_.find(key); found != attempts_.end()) life = found->second.get();
  if (life == nullptr) {
    if (const AttemptLife* later = FindLater(key)) {
      RefuseAsTooLate(key, later->key());
      return false;
    }
    EndEarlier(key);
    if (IsInTheWay(key, place)) {
      LogWarning(ToText(key) + " waits for the end of an earlier attempt of " + place.first);
      waiting_[key] = {start, job, epoch};
      return true;
    }
    life = LookUp(claim);
  }
  if (life != nullptr && !life->MayStart()) {
    life->ReportAll();
    return !life->has_ended();
  }
  if (life == nullptr && DirectoryOf(place).HasTombstone()) {
    LogInfo("did not start " + ToText(key) + ": it was stopped before");
    ReportNeverStarted(key);
    return false;
  }
  attempts_.erase(key);
  Launch(start, job, std::move(claim));
  return true;
}

Claim Attempts::MakeClaim(const v1::StartInstance& start, const v1::JobConfig& job, uint64_t epoch) const {
  const AttemptKey key = ToKey(start.id());
  Claim claim{.key = key,
              .job_id = job.job_id(),
              .instance_name = start.instance_name(),
              .round = start.round(),
              .epoch = epoch,
              .boot_id = options_.boot_id,
              .log_directory = DirectoryOf({start.instance_name(), key.attempt}).path(),
              .ranks = {}};
  const std::string& log_root = job.log_directory().empty() ? options_.log_root : job.log_directory();
  if (!log_root.empty()) {
    claim.log_directory = log_root + "/" + start.instance_name() + "/" + std::to_string(key.attempt);
  }
  for (const v1::RankLaunch& rank : start.ranks()) claim.ranks.push_back({rank.rank(), rank.local()});
  return claim;
}

void Attempts::Launch(const v1::StartInstance& start, const v1::JobConfig& job, Claim claim) {
  const AttemptDirectory directory = DirectoryOf({claim.instance_name, claim.key.attempt});
  agent::Launch launch = MakeLaunch(claim, directory, options_.lease, options_.socket, start, job);
  const auto files = AddMpi(start.mpi(), directory, options_.mpi, launch);
  if (job.records_communication()) AddProbes(directory, options_.mpi.programs, launch);
  if (IsIdle()) own_descriptors_ = CountDescriptors();
  LogInfo("starting " + ToText(claim.key) + " (" + start.instance_name() + "), round " + std::to_string(start.round()));
  AttemptLife& life = Add(directory, std::move(claim));
  life.holds_master_port = start.holds_master_port();
  life.own_port = static_cast<uint16_t>(start.own_port());
  life.Start(FormatLaunch(launch), files);
}

bool Attempts::IsIdle() const {
  return Live().empty() && std::ranges::all_of(nameless_, [](const auto& entry) { return entry.second->has_ended(); });
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
  waiting_.erase(key);
  AttemptLife* life = nullptr;
  const std::string name = NameOf(stop);
  if (const auto found = attempts_.find(key); found != attempts_.end()) {
    life = found->second.get();
  } else if (!name.empty()) {
    life = LookUp({.key = key, .instance_name = name});
  } else {
    LogError("cannot stop " + ToText(key) + ": nobody has said what its instance is called");
    return;
  }
  if (life == nullptr) {
    Add(DirectoryOf({name, key.attempt}), {.key = key, .instance_name = name}).EndUnstarted();
    return;
  }
  life->Stop({}, stop.at_once());
  if (life->has_ended()) life->ReportAll();
}

void Attempts::StopAll(StopReason reason, bool at_once) {
  waiting_.clear();
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

void Attempts::CountMpiRanks() {
  for (const auto& [key, life] : attempts_) life->CountMpiRanks();
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
  for (const auto& [place, life] : nameless_) {
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

std::vector<StackTarget> Attempts::StackTargets() const {
  std::vector<StackTarget> targets;
  for (const auto& [key, life] : attempts_) {
    std::vector<LiveRank> live;
    if (!life->has_ended()) life->AppendLiveRanks(live);
    const Claim& claim = life->claim();
    const AttemptDirectory output(claim.log_directory.empty() ? life->directory().path() : claim.log_directory);
    for (const LiveRank& rank : live) {
      targets.push_back({.process = rank.process,
                         .rank = rank.rank.rank,
                         .instance = claim.instance_name,
                         .error_output = output.RankFile(rank.rank.local, ".err")});
    }
  }
  return targets;
}

std::optional<uint32_t> Attempts::Round() const {
  std::optional<uint32_t> round;
  for (const auto& [key, life] : attempts_) {
    if (!life->has_ended()) round = std::max(round.value_or(0), life->claim().round);
  }
  return round;
}

const Claim* Attempts::ClaimOf(AttemptKey key) const {
  const auto found = attempts_.find(key);
  return found == attempts_.end() ? nullptr : &found->second->claim();
}

const Claim* Attempts::ClaimOf(const std::string& instance_name, uint32_t attempt) const {
  for (const auto& [key, life] : attempts_) {
    if (key.attempt == attempt && life->claim().instance_name == instance_name) return &life->claim();
  }
  return nullptr;
}

}  // namespace aimaster::agent
