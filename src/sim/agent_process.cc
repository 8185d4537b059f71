#include "sim/agent_process.h"

#include <signal.h>

#include <algorithm>

#include "agent/limits.h"
#include "core/overloaded.h"
#include "sim/world.h"

namespace aimaster::sim {
namespace {

using namespace std::chrono_literals;
using agent::AttemptInput;

Duration OrphanTimeout(Duration told) {
  return told == Duration::zero() ? Duration(agent::kOrphanTimeoutDefault) : told;
}

agent::AgentIdentity MakeIdentity(const SimNode& node, const std::string& agent_id) {
  return {.node = Value(node.index),
          .node_name = node.name,
          .agent_id = agent_id,
          .host_name = node.name,
          .boot_id = std::to_string(node.machine.boot()),
          .pid = 1,
          .address = "10.0.0." + std::to_string(Value(node.index))};
}

}  // namespace

SimAgent::SimAgent(World& world, SimNode& node, uint64_t id)
    : process(world.queue),
      world_(world),
      node_(node),
      id_(id),
      text_id_("agent-" + std::to_string(id)),
      conversation_(MakeIdentity(node, text_id_), node.disk.greatest_epoch),
      lease_(OrphanTimeout(node.disk.orphan_timeout)) {}

void SimAgent::Say(const std::string& text) const {
  if (world_.is_traced()) world_.Say(node_.name + " " + text_id_, text);
}

void SimAgent::Begin() {
  Say("begins");
  BeginLease();
  LookAtLease();
  AdoptAll();
  Dial();
  Beat();
}

void SimAgent::Leave() {
  Say("leaves");
  world_.OnAgentGone(node_, true);
  throw ProcessDied();
}

// ---- the link ----

void SimAgent::Dial() {
  Say("dials");
  dial_waits_ = false;
  const std::optional<MasterAddress> address = world_.ReadAddress(node_.name);
  if (!address) {
    OnLinkClosed();
    return;
  }
  wire_ = world_.network.Dial(Value(node_.index), id_, address->master);
}

void SimAgent::OnOpened(uint64_t wire) {
  if (wire != wire_) return;
  is_open_ = true;
  last_heard_ = node_.Now().monotonic;
  WatchSilence();
  conversation_.clock().SetShared(false);
  Perform(conversation_.OnOpen(Live()));
}

void SimAgent::OnBytes(uint64_t wire, const std::string& bytes) {
  if (wire != wire_ || !is_open_) return;
  last_heard_ = node_.Now().monotonic;
  if (world_.broken() != Break::kObeyAnyone) {
    Perform(conversation_.OnMessage(bytes, node_.Now().wall));
    return;
  }
  v1::ToAgent message;
  message.ParseFromString(bytes);
  const uint64_t greatest = conversation_.greatest_epoch();
  if (message.has_welcome()) message.mutable_welcome()->set_epoch(std::max(greatest, message.welcome().epoch()));
  if (message.has_command()) message.mutable_command()->set_epoch(std::max(greatest, message.command().epoch()));
  Perform(conversation_.OnMessage(message.SerializeAsString(), node_.Now().wall));
}

void SimAgent::OnClosed(uint64_t wire) {
  if (wire == wire_) OnLinkClosed();
}

void SimAgent::HangUp(const std::string& reason) {
  Say("hangs up: " + reason);
  world_.network.Close(wire_, End::kAgent);
  OnLinkClosed();
}

void SimAgent::OnLinkClosed() {
  silence_alarm_.Cancel();
  wire_ = 0;
  if (std::exchange(is_open_, false)) {
    const bool was_welcomed = conversation_.is_welcomed();
    if (was_welcomed) LookAtLease();
    conversation_.OnClose();
    if (was_welcomed) Say("has lost its master");
    if (world_.broken() == Break::kPanic && was_welcomed) StopAll(false, Death::kOrphaned);
  }
  dial_waits_ = true;
  dial_alarm_.After(backoff_.Next(world_.random.Next()), [this] { Dial(); });
}

void SimAgent::OnAddressChanged() {
  if (dial_waits_) dial_alarm_.After(world_.random.Time(0ms, agent::kAddressPoll), [this] { Dial(); });
}

void SimAgent::WatchSilence() {
  const Duration max = conversation_.is_welcomed() ? Duration(agent::kMasterSilentMax) : Duration(agent::kWelcomeMax);
  const Duration silent = node_.Now().monotonic - last_heard_;
  if (silent >= max) {
    HangUp("no word from the master");
  } else {
    silence_alarm_.After(max - silent, [this] { WatchSilence(); });
  }
}

// ---- the conversation ----

void SimAgent::Perform(const agent::Steps& steps) {
  const Overloaded perform{[this](const agent::Send& send) {
                             world_.OnAgentSends(*this, send.message);
                             if (is_open_) world_.network.Send(wire_, End::kAgent, Disguise(send.message));
                           },
                           [this](const agent::SaveEpoch& save) {
                             if (world_.broken() != Break::kForgetEpoch) node_.disk.greatest_epoch = save.epoch;
                           },
                           [this](const agent::Welcomed& welcomed) { OnWelcome(welcomed.job); },
                           [this](const agent::Order& order) {
                             world_.OnAccepted(node_, wire_, true);
                             Obey(order.command);
                           },
                           [this](const agent::Refuse& refusal) {
                             Say("is refused: " + refusal.reason);
                             if (refusal.job_over) {
                               End(Ending::kJobOver, Death::kJobOver, true);
                             } else {
                               Leave();
                             }
                           },
                           [this](const agent::HangUp& hang_up) { HangUp(hang_up.reason); },
                           [this](const agent::Note& note) { Say(note.text); }};
  for (const agent::Step& step : steps) {
    process.Step();
    std::visit(perform, step);
  }
}

void SimAgent::OnWelcome(const v1::JobConfig& job) {
  Say("is welcomed, epoch " + std::to_string(conversation_.greatest_epoch()));
  world_.OnAccepted(node_, wire_, false);
  job_ = job;
  backoff_.Reset();
  WatchSilence();
  if (ending_ == Ending::kOrphaned) ending_ = Ending::kNone;
  node_.disk.orphan_timeout = std::chrono::milliseconds(job.orphan_timeout_ms());
  RenewLease();
  SayHeartbeat();
}

void SimAgent::SayHeartbeat() { Perform(conversation_.Heartbeat(node_.Now(), Activity())); }

// As log_watch.cc has it, from when the files were last written.
agent::LogActivity SimAgent::Activity() const {
  const Monotonic now = node_.Now().monotonic;
  agent::LogActivity activity;
  activity.look = look_;
  for (const auto& [key, life] : attempts_) {
    if (!life.has_started || life.has_ended()) continue;
    const AttemptDirectory& directory = node_.disk.attempts.at(key);
    for (uint32_t local = 0; local < directory.ranks.size(); ++local) {
      const bool is_deaf = world_.broken() == Break::kDeafToOutput;
      const Duration silent = is_deaf ? Duration(1h) : now - directory.ranks[local].printed;
      if (!activity.quiet) activity.quiet = {.silent = silent};
      activity.quiet->silent = std::min(activity.quiet->silent, silent);
      if (activity.quiet->quietest_rank && silent <= activity.quiet->quietest_silent) continue;
      activity.quiet->quietest_rank = directory.first_rank + local;
      activity.quiet->quietest_silent = silent;
    }
  }
  return activity;
}

void SimAgent::Beat() {
  SayHeartbeat();
  process.After(kHeartbeatInterval, [this] { Beat(); });
}

// ---- the lease, as in lease_keeper.cc ----

void SimAgent::BeginLease() {
  const Monotonic now = node_.Now().monotonic;
  const bool is_of_this_boot = node_.disk.lease_renewed && node_.disk.lease_boot == node_.machine.boot();
  lease_.Begin(now, is_of_this_boot ? node_.disk.lease_renewed : std::nullopt);
  if (!is_of_this_boot) WriteLease(now);
}

void SimAgent::WriteLease(Monotonic renewed) {
  node_.disk.lease_renewed = renewed;
  node_.disk.lease_boot = node_.machine.boot();
}

void SimAgent::RenewLease() {
  const Monotonic now = node_.Now().monotonic;
  lease_.Renew(now, OrphanTimeout(std::chrono::milliseconds(job_.orphan_timeout_ms())));
  WriteLease(now);
}

void SimAgent::LookAtLease() {
  if (conversation_.is_welcomed()) RenewLease();
  if (lease_.Look(node_.Now().monotonic) != Duration::zero() && ending_ == Ending::kNone) {
    Say("has had no master for too long");
    End(Ending::kOrphaned, Death::kOrphaned, false);
  }
  lease_alarm_.After(lease_.pace(), [this] { LookAtLease(); });
}

// ---- orders ----

void SimAgent::Obey(const v1::Command& command) {
  switch (command.body_case()) {
    case v1::Command::kStartInstance:
      if (ending_ == Ending::kNone) Start(command.start_instance());
      break;
    case v1::Command::kStopInstance:
      Stop(ToKey(command.stop_instance().id()), command.stop_instance().at_once());
      break;
    case v1::Command::kReservePort:
      ReservePort(command.reserve_port());
      break;
    case v1::Command::kCollectEvidence:
      collections_.try_emplace(command.collect_evidence().collection(),
                               node_.Now().monotonic + Duration(agent::kEvidenceDrainMax));
      AnswerCollections();
      break;
    case v1::Command::kLookNow:
      if (world_.broken() == Break::kNeverLook) break;
      look_ = command.look_now().number();
      SayHeartbeat();
      break;
    case v1::Command::kShutdown:
      End(Ending::kJobOver, Death::kJobOver, true);
      break;
    case v1::Command::kCaptureStacks: {  // nothing was got; what counts here is that it is answered
      v1::Report report;
      report.mutable_stacks_captured()->set_capture(command.capture_stacks().capture());
      Report(std::move(report));
      break;
    }
    case v1::Command::kRetryableErrors:
    case v1::Command::kSignalInstances:
    case v1::Command::kReadRecords:  // nothing is recorded here
    case v1::Command::BODY_NOT_SET:
      break;
  }
}

void SimAgent::ReservePort(const v1::ReservePort& order) {
  v1::Report report;
  const bool is_repeated = order.reservation() == reservation_ && reserved_ports_.size() >= order.count();
  if (is_repeated || !world_.random.Chance(0.03)) {
    if (!is_repeated) reserved_ports_.clear();
    reservation_ = order.reservation();
    while (reserved_ports_.size() < std::max(1u, order.count())) {
      reserved_ports_.push_back(world_.random.Between(10000, 32000));
    }
    report.mutable_port_reserved()->set_reservation(order.reservation());
    report.mutable_port_reserved()->set_port(reserved_ports_.front());
    for (const uint32_t port : reserved_ports_) report.mutable_port_reserved()->add_ports(port);
  } else {
    report.mutable_port_refused()->set_reservation(order.reservation());
    report.mutable_port_refused()->set_reason("none is free");
  }
  Report(std::move(report));
}

bool SimAgent::DrainExits() {
  bool is_waiting = false;
  for (auto& [key, life] : attempts_) {
    if (life.has_ended() || !life.has_started) continue;
    CollectExits(key);
    for (uint32_t local = 0; local < life.ends.size(); ++local) {
      const RankLife* rank = world_.FindRank(key, DirectoryOf(key).first_rank + local);
      is_waiting = is_waiting || (!life.ends[local] && rank != nullptr && !rank->is_alive);
    }
  }
  return is_waiting;
}

void SimAgent::AnswerCollections() {
  const bool is_waiting = DrainExits();
  const Monotonic now = node_.Now().monotonic;
  for (auto entry = collections_.begin(); entry != collections_.end();) {
    if (is_waiting && now < entry->second) {
      ++entry;
      continue;
    }
    v1::Report report;
    report.mutable_evidence_collected()->set_collection(entry->first);
    for (const RankLife* rank : world_.LiveRanksOf(node_)) {
      if (rank->is_dumping) report.mutable_evidence_collected()->add_dumping_core(rank->rank);
    }
    Report(std::move(report));
    entry = collections_.erase(entry);
  }
  if (!collections_.empty()) collection_alarm_.After(2ms, [this] { AnswerCollections(); });
}

// ---- breaks ----

// Who obeys anyone doesn't say what else it has seen.
std::string SimAgent::Disguise(const std::string& bytes) const {
  v1::ToMaster message;
  if (world_.broken() != Break::kObeyAnyone || !message.ParseFromString(bytes) || !message.has_hello()) return bytes;
  message.mutable_hello()->set_greatest_epoch(0);
  return message.SerializeAsString();
}

void SimAgent::EndEarly(AttemptKey key) {
  const auto found = attempts_.find(key);
  if (found == attempts_.end() || found->second.has_ended()) return;
  for (uint32_t local = 0; local < found->second.ends.size(); ++local) {
    if (!found->second.ends[local])
      SetRankEnd(key, local, agent::RankExitFile{.signal = SIGTERM, .stopped_by_us = true});
  }
  found->second.was_ended_early = true;
  found->second.state = agent::AttemptState::kEnded;
  ReportEnded(key);
}

void SimAgent::CountAgain(AttemptKey key) {
  for (const auto& [other, life] : attempts_) {
    if (other.instance != key.instance || other.attempt + 1 != key.attempt) continue;
    for (const auto& end : life.ends) {
      if (!end) continue;
      v1::Report again = *end;
      *again.mutable_rank_exited()->mutable_id() = ToId(key);
      Report(std::move(again));
      return;
    }
  }
}

// ---- the end ----

void SimAgent::End(Ending ending, Death why, bool at_once) {
  ending_ = ending;
  StopAll(at_once, why);
  ExitWhenIdle();
}

// What is queued still goes out before the connection closes.
void SimAgent::ExitWhenIdle() {
  if (ending_ == Ending::kNone || !Live().empty()) return;
  Say("exits");
  world_.OnAgentGone(node_, true);
  throw ProcessDied();
}

}  // namespace aimaster::sim
