#include "agent/agent.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "agent/error_file.h"
#include "agent/limits.h"
#include "agent/log.h"
#include "agent/mpi_launch.h"
#include "agent/record_folder.h"
#include "agent/small_file.h"
#include "core/clocks.h"
#include "core/overloaded.h"
#include "detect/compiled_rules.h"
#include "shim/lease_format.h"

namespace aimaster::agent {
namespace {

std::string HostName() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return SafeText(name);
}

std::string RandomId(uint64_t random) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(random));
  return text;
}

// A job's directory has its name.
std::string JobOfDirectory(const std::string& path) {
  const auto job = JobId::Parse(std::filesystem::path(path).lexically_normal().filename().string());
  return job ? job->text() : std::string();
}

// The user's own where the job was started with some. Where these can't be used the built-in ones still can.
RulesInForce ReadRules(const std::string& job_directory) {
  const std::string path = job_directory + "/" + kCompiledRulesFile;
  const auto bytes = ReadWhole(path, kCompiledRulesMaxBytes);
  Result<CompiledRules> own = CompiledRules{};
  if (bytes) {
    own = DecodeCompiledRules(*bytes);
  } else if (!MeansAbsent(bytes.error())) {
    own = Fail(ErrorKind::kEnvironment, std::strerror(bytes.error()));
  }
  Result<RulesInForce> rules = own ? RulesInForce::With(std::move(*own)) : std::unexpected(own.error());
  if (rules) return std::move(*rules);
  LogError(path + ": " + rules.error().message + "; output is searched by the built-in rules alone");
  return *RulesInForce::With({});
}

Duration OrphanTimeout(uint32_t milliseconds) {
  return milliseconds == 0 ? Duration(kOrphanTimeoutDefault) : Duration(std::chrono::milliseconds(milliseconds));
}

}  // namespace

std::string NodeDirectory(const AgentOptions& options) { return options.job_directory + "/nodes/" + options.node_name; }

Agent::Agent(boost::asio::io_context& io, AgentOptions options, AgentFile file)
    : io_(io),
      options_(std::move(options)),
      file_(std::move(file)),
      rules_(ReadRules(options_.job_directory)),
      lease_(NodeDirectory(options_) + "/" AIMASTER_FILE_LEASE, file_.boot_id, file_.process.pid,
             OrphanTimeout(file_.orphan_timeout_ms)),
      conversation_(MakeIdentity(), file_.greatest_epoch),
      ports_(io, [this] { return random_(); }),
      logs_(io, matcher_, NodeDirectory(options_) + "/reserve",
            [this](AttemptKey key) {
              v1::Report report;
              v1::AttemptId& id = *report.mutable_attempt_ready()->mutable_id();
              id.set_instance(key.instance);
              id.set_attempt(key.attempt);
              Report(std::move(report));
            }),
      attempts_(io,
                {.job_id = JobOfDirectory(options_.job_directory),
                 .node_name = options_.node_name,
                 .node_directory = NodeDirectory(options_),
                 .lease = lease_.path(),
                 .log_root = options_.log_root,
                 .shim_path = options_.shim_path,
                 .boot_id = file_.boot_id,
                 .mpi = {.programs = std::filesystem::path(options_.shim_path).parent_path(),
                         .token_file = options_.job_directory + "/token"}},
                MakeAttemptCallbacks()),
      core_dumps_(io, [this] { return attempts_.LiveRanks(); }),
      link_(io, options_.job_directory, MakeLinkCallbacks()),
      stack_helper_(io),
      owed_(io),
      takeover_timer_(io),
      heartbeat_timer_(io),
      first_heartbeats_timer_(io),
      lease_timer_(io),
      collection_timer_(io),
      goodbye_timer_(io),
      hang_timer_(io),
      checkpoint_timer_(io) {
  if (file_.hang_setting) tidings_.SetHang(*file_.hang_setting);
}

AgentIdentity Agent::MakeIdentity() {
  return {.node = options_.node,
          .node_name = options_.node_name,
          .agent_id = RandomId(random_()),
          .host_name = HostName(),
          .boot_id = file_.boot_id,
          .pid = file_.process.pid,
          .address = options_.address};
}

Attempts::Callbacks Agent::MakeAttemptCallbacks() {
  return {.report = [this](v1::Report report) { Report(std::move(report)); },
          .on_rank_ended = [this](const AttemptLife& attempt, RankEnd& end) { OnRankEnded(attempt, end); },
          .report_rank_end = [this](const AttemptLife& attempt, const RankEnd& end) { ReportRankEnd(attempt, end); },
          .on_running =
              [this](const AttemptLife& attempt) {
                logs_.Add(attempt.claim(), false);
                records_.Add(attempt.key(), attempt.directory());
                OnRoundOf(attempt);
              },
          .on_ended = [this](const AttemptLife& attempt) { OnEnded(attempt); },
          .on_nameless_ended = [this] { ExitWhenIdle(); }};
}

MasterLink::Callbacks Agent::MakeLinkCallbacks() {
  return {.on_open =
              [this](bool same_machine) {
                if (LeaveWhenReplaced()) return;
                conversation_.clock().SetShared(same_machine);
                Perform(conversation_.OnOpen(attempts_.Live(), Trouble()));
              },
          .on_message = [this](std::string_view message) { Perform(conversation_.OnMessage(message, WallNow())); },
          .on_close =
              [this](const std::string&) {
                if (conversation_.is_welcomed()) LookAtLease();  // the count begins here, not at the last look
                conversation_.OnClose();
                first_heartbeats_timer_.Cancel();
              }};
}

void Agent::Run() {
  SaveFile();
  logs_.SetMaxBytes(file_.log_max_bytes);
  LogInfo("agent of " + options_.node_name + ", process " + std::to_string(file_.process.pid));
  if (const Status opened = lease_.Open(MonotonicNow()); !opened) LogError(opened.error().message);
  SweepRecordFolders();
  LookAtLease();
  ServeRanks();
  patient_until_ = MonotonicNow() + kUnreadableMax;
  TakeOver();
  Beat();
}

// A master is told who lives here, and goes by it; so nobody is spoken to before that is known.
void Agent::TakeOver() {
  if (const Status adopted = attempts_.AdoptAll(MonotonicNow() < patient_until_); !adopted) {
    if (std::exchange(told_takeover_trouble_, adopted.error().message) != adopted.error().message) {
      LogError(adopted.error().message + "; trying again");
    }
    takeover_timer_.After(kFileRetry, [this] { TakeOver(); });
    return;
  }
  if (const std::string trouble = Trouble(); !trouble.empty()) LogError(trouble);
  link_.Start();
}

std::string Agent::Trouble() const {
  const Status room = attempts_.IsIdle() ? Status() : attempts_.HasDescriptors();
  return room ? "" : room.error().message + "; until then some of it is only looked at now and then";
}

void Agent::SaveFile() { owed_.Write(NodeDirectory(options_) + "/agent.json", FormatAgentFile(file_)); }

// ---- the conversation ----

void Agent::Perform(const Steps& steps) {
  const Overloaded perform{[this](const Send& send) { link_.Send(send.message); },
                           [this](const SaveEpoch& save) {
                             file_.greatest_epoch = save.epoch;
                             SaveFile();
                           },
                           [this](const Welcomed& welcomed) { OnWelcome(welcomed.job); },
                           [this](const Order& order) { Obey(order.command); },
                           [this](const Refuse& refusal) { OnRefused(refusal); },
                           [this](const HangUp& hang_up) { link_.HangUp(hang_up.reason); },
                           [](const Note& note) { LogWarning(note.text); }};
  for (const Step& step : steps) std::visit(perform, step);
}

void Agent::OnWelcome(const v1::JobConfig& job) {
  LogInfo("welcomed by the master of epoch " + std::to_string(file_.greatest_epoch));
  job_ = job;
  link_.OnWelcome();
  if (ending_ == Ending::kOrphaned) ending_ = Ending::kNone;
  if (file_.orphan_timeout_ms != job.orphan_timeout_ms() || file_.log_max_bytes != job.log_max_bytes()) {
    file_.orphan_timeout_ms = job.orphan_timeout_ms();
    file_.log_max_bytes = job.log_max_bytes();
    SaveFile();
    logs_.SetMaxBytes(file_.log_max_bytes);
  }
  ShareRetryableErrors({job.retryable_errors().begin(), job.retryable_errors().end()});
  RenewLease();
  BeatSoon(kClockFirstHeartbeats);
}

void Agent::OnRefused(const Refuse& refusal) {
  LogError("refused by the master: " + refusal.reason);
  if (refusal.job_over) {
    End(Ending::kJobOver, {}, true);
  } else {
    Exit(kExitRefused);
  }
}

void Agent::Beat() {
  if (LeaveWhenReplaced()) return;
  oom_kills_.Look(MonotonicNow());
  if (link_.queued_bytes() < kHeartbeatQueueMaxBytes) SayHeartbeat();
  heartbeat_timer_.After(kHeartbeatInterval, [this] { Beat(); });
}

// What it says of the ranks is as new as can be: a master that waits for a job to have been silent for long enough
// should not have to wait for another look.
void Agent::SayHeartbeat() {
  logs_.LookNow();
  const Moment now = Now();
  LogActivity activity = logs_.ActivityAt(now.monotonic);
  activity.look = look_;
  Perform(conversation_.Heartbeat(now, activity, tidings_, records_.Summary()));
}

void Agent::BeatSoon(int times) {
  SayHeartbeat();
  if (times > 1) first_heartbeats_timer_.After(kClockFirstInterval, [this, times] { BeatSoon(times - 1); });
}

void Agent::LookAtLease() {
  if (conversation_.is_welcomed()) RenewLease();
  const Duration orphaned = lease_.Look(MonotonicNow());
  if (orphaned != Duration::zero() && ending_ == Ending::kNone) {
    LogError("no master for " + FormatDuration(orphaned) + ", --orphan-timeout is " + FormatDuration(lease_.timeout()) +
             ": stopping what runs here; a master that comes back to this job finds the exits in " +
             NodeDirectory(options_));
    End(Ending::kOrphaned, {.orphaned = orphaned}, false);
  }
  lease_timer_.After(lease_.pace(), [this] { LookAtLease(); });
}

// Shims that can't see it in the file hear it by a signal: what they must not do is to end a job that is led.
void Agent::RenewLease() {
  const Status renewed = lease_.Renew(MonotonicNow(), OrphanTimeout(job_.orphan_timeout_ms()));
  if (!renewed) attempts_.SignalAll(SIGURG);
  if (!renewed && !std::exchange(told_lease_trouble_, true)) {
    LogError(renewed.error().message + "; telling the shims by signal instead");
  } else if (renewed && std::exchange(told_lease_trouble_, false)) {
    LogInfo("the lease can be written again");
  }
}

// ---- orders ----

void Agent::Obey(const v1::Command& command) {
  switch (command.body_case()) {
    case v1::Command::kStartInstance:
      if (ending_ == Ending::kNone) StartInstance(command.start_instance(), command.epoch());
      break;
    case v1::Command::kStopInstance:
      attempts_.Stop(command.stop_instance());
      break;
    case v1::Command::kSignalInstances:
      SignalInstances(command.signal_instances().signal());
      break;
    case v1::Command::kReservePort:
      ReservePort(command.reserve_port());
      break;
    case v1::Command::kCollectEvidence:
      CollectEvidence(command.collect_evidence().collection());
      break;
    case v1::Command::kRetryableErrors:
      LearnRetryableErrors(std::vector<std::string>(command.retryable_errors().texts().begin(),
                                                    command.retryable_errors().texts().end()));
      break;
    case v1::Command::kCaptureStacks:
      CaptureStacks(command.capture_stacks());
      break;
    case v1::Command::kLookNow:
      look_ = command.look_now().number();
      SayHeartbeat();
      break;
    case v1::Command::kReadRecords:
      SendRecords(command.read_records().number());
      break;
    case v1::Command::kShutdown:
      LogInfo("the job has ended");
      End(Ending::kJobOver, {}, true);
      break;
    case v1::Command::BODY_NOT_SET:
      LogWarning("the master asks for something that this agent is too old for; it goes on without it");
      break;
  }
}

// Its port may have been let go since it was reserved: its last attempt listened there, or another agent held it. A
// program takes seconds until it listens.
void Agent::StartInstance(const v1::StartInstance& start, uint64_t epoch) {
  const bool lives = attempts_.Start(start, job_, epoch);
  if (lives && start.own_port() != 0) ports_.Hold(static_cast<uint16_t>(start.own_port()));
}

void Agent::SignalInstances(int signal) {
  if (signal != SIGUSR1 && signal != SIGUSR2) {
    LogWarning("did not pass signal " + std::to_string(signal) + " on: only SIGUSR1 and SIGUSR2 are");
    return;
  }
  attempts_.SignalAll(signal);
}

// The same order may come twice, around a reconnect; the ports that were told are those that ranks are given.
void Agent::ReservePort(const v1::ReservePort& order) {
  v1::Report report;
  const uint32_t count = std::max(1u, order.count());
  const bool is_repeated = order.reservation() == reservation_ && reserved_ports_.size() == count;
  const auto ports = is_repeated ? reserved_ports_ : ports_.Reserve(count, order.hold());
  if (ports) {
    reservation_ = order.reservation();
    reserved_ports_ = *ports;
    report.mutable_port_reserved()->set_reservation(order.reservation());
    report.mutable_port_reserved()->set_port(ports->front());
    for (const uint16_t port : *ports) report.mutable_port_reserved()->add_ports(port);
  } else {
    LogWarning(ports.error().message);
    report.mutable_port_refused()->set_reservation(order.reservation());
    report.mutable_port_refused()->set_reason(ports.error().message);
  }
  Report(std::move(report));
}

void Agent::CollectEvidence(uint32_t collection) {
  core_dumps_.Alert();
  attempts_.CountMpiRanks();
  collections_.try_emplace(collection, MonotonicNow() + kEvidenceDrainMax);
  AnswerCollections();
}

void Agent::AnswerCollections() {
  const bool is_waiting = attempts_.DrainExits();
  const Monotonic now = MonotonicNow();
  for (auto entry = collections_.begin(); entry != collections_.end();) {
    if (is_waiting && now < entry->second) {
      ++entry;
      continue;
    }
    v1::Report report;
    report.mutable_evidence_collected()->set_collection(entry->first);
    for (const uint32_t rank : core_dumps_.Look()) report.mutable_evidence_collected()->add_dumping_core(rank);
    Report(std::move(report));
    entry = collections_.erase(entry);
  }
  if (!collections_.empty()) collection_timer_.After(kPollFirst, [this] { AnswerCollections(); });
}

void Agent::SendRecords(uint64_t number) {
  if (link_.queued_bytes() >= kHeartbeatQueueMaxBytes) return;
  for (v1::Records& records : records_.ReadAll(number)) Perform(conversation_.SendRecords(std::move(records)));
}

// ---- attempts ----

void Agent::OnRankEnded(const AttemptLife& attempt, RankEnd& end) {
  if (end.exit && !end.mpi_rank) BlameMpiRank(attempt.directory(), end);
  const bool well = end.exit && end.exit->code == 0;
  logs_.RankEnded(attempt.key(), end.rank.local, well);
  if (well) return;
  if (sdk_socket_) sdk_socket_->AnswerWaiting();  // what it said before it died
  end.dump_start_ns = core_dumps_.DumpStartNs(attempt.key(), end.rank.local);
  if (end.exit && end.exit->signal == SIGKILL && !end.exit->stopped_by_us) {
    end.out_of_memory = oom_kills_.Take(MonotonicNow());
  }
  if (HasSomethingToSay(end)) end.words = logs_.WordsOf(attempt.claim(), end.rank.local);
  const bool is_beneath_torchrun = end.exit && end.exit->code == 1 && end.words.torchrun;
  if (is_beneath_torchrun && end.words.torchrun->exit_code == -SIGKILL) {
    end.out_of_memory = oom_kills_.Take(MonotonicNow());
  }
  core_dumps_.Alert();
}

void Agent::ReportRankEnd(const AttemptLife& attempt, const RankEnd& end) {
  v1::Report report;
  *report.mutable_rank_exited() =
      MakeRankReport(attempt.directory(), attempt.claim(), end, conversation_.clock().Estimate(), matcher_,
                     attempt.claim().boot_id == file_.boot_id ? std::optional(Now()) : std::nullopt);
  AddWordsOfRank(attempt, end, *report.mutable_rank_exited());
  PassCheckpointOn();  // what was saved before it died
  Report(std::move(report));
}

void Agent::OnEnded(const AttemptLife& attempt) {
  if (attempt.holds_master_port) ports_.ReleaseAll();
  if (attempt.own_port != 0) ports_.Release(attempt.own_port);
  logs_.Remove(attempt.key());
  records_.Remove(attempt.key());
  RemoveRecordFolder(attempt.directory());
  core_dumps_.Forget(attempt.key());
  tidings_.Forget(attempt.key());
  ExitWhenIdle();
}

// ---- the end ----

void Agent::End(Ending ending, StopReason reason, bool at_once) {
  ending_ = ending;
  attempts_.StopAll(reason, at_once);
  ExitWhenIdle();
}

void Agent::ExitWhenIdle() {
  if (ending_ == Ending::kNone || !attempts_.IsIdle()) return;
  if (ending_ == Ending::kJobOver) logs_.Close();
  Exit(0);
}

// Two agents of one node would take each other's attempts for lost.
bool Agent::LeaveWhenReplaced() {
  if (!HasLostNode(NodeDirectory(options_), options_.node_lock)) return false;
  LogError("agent.lock was removed and another agent serves this node: leaving it to that one; what runs here goes on");
  Exit(kExitNodeTaken);
  return true;
}

void Agent::Leave() {
  LogInfo("leaving; what runs here goes on");
  Exit(0);
}

void Agent::Exit(int code) {
  if (std::exchange(is_exiting_, true)) return;
  exit_code_ = code;
  LogInfo("exiting with " + std::to_string(code));
  sdk_socket_.reset();
  stack_helper_.Stop();
  link_.Close([this] { io_.stop(); });
  goodbye_timer_.After(kGoodbyeMax, [this] { io_.stop(); });
}

}  // namespace aimaster::agent
