// Coming up: from the submission to the last rank's first word.
#include <algorithm>

#include "core/count.h"
#include "core/roles.h"
#include "engine/layout.h"
#include "engine/orders.h"
#include "engine/tallies.h"
#include "engine/transition.h"

namespace aimaster {

void Transition::On(const JobSubmitted& input) {
  if (job_.phase != Phase::kNew) return;
  job_.spec = input.spec;
  job_.submit_time = now_;
  job_.instances = LayOutInstances(job_.spec);
  for (size_t i = 0; i < job_.instances.size(); ++i) {
    const InstanceIndex index{static_cast<uint32_t>(i)};
    job_.instance_of_rank.insert(job_.instance_of_rank.end(), job_.instances[i].ranks, index);
    Changed(index);
  }
  job_.rank_ended.assign(WorldSize(job_.spec), false);
  job_.rounds.push_back({.round = job_.round, .start = now_});

  const uint32_t slots = SlotCount(job_.spec);
  for (uint32_t slot = 0; slot < slots; ++slot) job_.placement.push_back(NodeIndex{slot});
  for (size_t i = 0; i < job_.instances.size(); ++i) {
    const InstanceIndex index{static_cast<uint32_t>(i)};
    job_.instances[i].node = job_.placement[SlotOf(job_.spec, index)];
  }
  // Nodes beyond the slots are spares.
  for (uint32_t node = 0; node < std::max(slots, job_.spec.local_nodes); ++node) job_.nodes[NodeIndex{node}] = {};

  job_.tallies = CountAll(job_);
  job_.status = JobStatus::kEnvPreparing;
  Tell("aimaster.job.submitted", "",
       "job submitted: " + Count(job_.instances.size(), "instance") + ", " + Count(WorldSize(job_.spec), "rank") +
           ", " + Count(job_.nodes.size(), "node"));
  for (const std::string& note : job_.spec.notes) Tell("aimaster.job.note", "", note);
  Acquire();
}

// Asks for the nodes that are wanted and missing; goes on when there are none.
void Transition::Acquire() {
  job_.phase = Phase::kAcquiring;
  job_.deadlines.start = now_.monotonic + job_.spec.timing.start_timeout;
  job_.slots_filled = 0;
  BeginStage(Stage::kAcquire);
  AskForNodes();
  if (AllSlotsFilled()) StartRound();
}

void Transition::On(const NodeJoined& input) {
  const auto found = job_.nodes.find(input.node);
  if (found == job_.nodes.end() || found->second.joined || found->second.lost) return;
  found->second.joined = true;
  found->second.name = input.name;
  found->second.address = input.address;
  Tell("aimaster.node.joined", input.name, "node " + input.name + " is connected");
  if (job_.phase == Phase::kAcquiring && AllSlotsFilled()) StartRound();
  if (RoundIsUp() && job_.tallies.waiting > 0) StartWaiting();
}

void Transition::On(const NodeDenied& input) {
  const bool waits = RoundIsUp() && job_.tallies.waiting > 0;
  if (job_.phase != Phase::kAcquiring && !waits) return;
  Tell("aimaster.node.denied", "", "no other node: " + input.reason);
  for (auto& [index, node] : job_.nodes) {
    if (!node.joined) node.lost = true;
  }
  const bool filled = FillSlots();
  const std::string no_node = "no node is left to run on: " + input.reason;
  if (waits) {
    if (filled) return StartWaiting();
    Record("NoNode", no_node, {});
    return FailNow("NoNode", no_node);
  }
  if (!filled) return End(JobStatus::kFailed, "NoNode", no_node, 1);
  StartRound();
}

void Transition::StartRound() {
  EndStage(Stage::kAcquire);
  BeginStage(Stage::kStart);
  job_.port_refusals = 0;
  if (!MeetAtMaster(job_.spec)) return StartAllInstances();
  ReserveNextPorts();
}

void Transition::ReserveNextPorts() {
  job_.phase = Phase::kReserving;
  ++job_.reservation;
  for (size_t i = 0; i < job_.instances.size(); ++i) {
    const InstanceState& instance = job_.instances[i];
    if (!HasAddress(job_.spec, instance.role) || instance.port == 0) continue;
    Changed(InstanceIndex{static_cast<uint32_t>(i)}).port = 0;
    ++job_.tallies.portless;
  }
  for (const ReservePort& order : ReserveOrders(job_)) Act(order);
}

void Transition::On(const PortReserved& input) {
  if (job_.phase != Phase::kReserving || input.reservation != job_.reservation) return;
  const InstanceState& first = job_.instances.front();
  if (HasAddress(job_.spec, first.role)) {
    TakePorts(input.node, input.ports);
    if (job_.tallies.portless > 0) return;
    job_.master_port = first.port;
  } else {
    job_.master_port = input.port;
  }
  job_.master_address = job_.nodes[NodeOfRankZero()].address;
  StartAllInstances();
}

// To the instances there that have none yet, in their order. Too few of them, from an agent that does not know how many
// were asked for, are a refusal.
void Transition::TakePorts(NodeIndex node, const std::vector<uint16_t>& ports) {
  auto next = ports.begin();
  for (uint32_t slot = 0; slot < job_.placement.size(); ++slot) {
    if (job_.placement[slot] != node) continue;
    for (const InstanceIndex index : InstancesOfSlot(job_.spec, slot)) {
      const InstanceState& instance = job_.instances[Value(index)];
      if (!HasAddress(job_.spec, instance.role) || instance.port != 0) continue;
      if (next == ports.end()) return On(PortRefused{job_.reservation, "the agent of its node reserved too few", node});
      InstanceState& taker = Changed(index);
      taker.address = job_.nodes.at(node).address;
      taker.port = *next++;
      --job_.tallies.portless;
    }
  }
}

void Transition::On(const PortRefused& input) {
  if (job_.phase != Phase::kReserving || input.reservation != job_.reservation) return;
  if (++job_.port_refusals < kPortReservationsMax) {
    ReserveNextPorts();
  } else {
    FailStart("NoPort", "no port could be reserved for the round: " + input.reason);
  }
}

void Transition::StartAllInstances() {
  job_.phase = Phase::kRunning;
  ClearFailures();
  job_.dumping_core.clear();
  job_.deadlines = {.start = now_.monotonic + job_.spec.timing.start_timeout};
  job_.ranks_started = now_.monotonic;
  job_.first_success.reset();
  job_.told_advancing.reset();
  job_.communication.clear();
  for (size_t i = 0; i < job_.instances.size(); ++i) {
    const InstanceIndex index{static_cast<uint32_t>(i)};
    if (!IsDoneForGood(index)) StartTogether(index);
  }
  job_.tallies = CountAll(job_);
  ChangedRound();
  Tell("aimaster.round.started", "", RoundStartText());
}

void Transition::StartTogether(InstanceIndex index) {
  BeginAttempt(index);
  InstanceState& instance = job_.instances[Value(index)];
  instance.live = true;
  for (uint32_t i = 0; i < instance.ranks; ++i) job_.rank_ended[Value(instance.first_rank) + i] = false;
  if (!IsAsync(job_)) return;
  Own(index).started_alone = false;
  Own(index).first_local_rank.reset();
}

std::string Transition::RoundStartText() const {
  std::string text = "round " + std::to_string(Value(job_.round)) + " starts " + Count(job_.tallies.live, "instance");
  const size_t done = job_.instances.size() - job_.tallies.live;
  if (done > 0) text += "; " + Count(done, "instance") + " of before " + (done == 1 ? "is" : "are") + " done";
  if (!MeetAtMaster(job_.spec)) return text;
  if (HasAddress(job_.spec, job_.instances.front().role)) return text + ", each with a port of its own";
  return text + ", MASTER_PORT " + std::to_string(job_.master_port);
}

void Transition::BeginAttempt(InstanceIndex index) {
  InstanceState& instance = Changed(index);
  instance.attempt = Attempt{instance.starts++};
  SetStatus(index, InstanceStatus::kStarting);
  instance.started = instance.ready = false;
  SetRanksSucceeded(index, 0);
  instance.ranks_failed = 0;
  instance.exit_code = instance.signal = std::nullopt;
  if (IsAsync(job_)) {
    Own(index).start = now_.monotonic;
    SetDeadline(index, now_.monotonic + job_.spec.timing.start_timeout);
  }
  Act(StartOrder(job_, index));
}

void Transition::On(const InstanceStarted& input) {
  InstanceState* instance = Current(input.instance, input.attempt);
  if (instance == nullptr || instance->started) return;
  Changed(input.instance).started = true;
  ++job_.tallies.started;
  if (instance->status == InstanceStatus::kStarting) instance->status = InstanceStatus::kRunning;
  FinishStartStage();
}

void Transition::FinishStartStage() {
  if (job_.phase != Phase::kRunning || !All(job_.tallies.started) || !IsOpen(Stage::kStart)) return;
  EndStage(Stage::kStart);
  BeginStage(Stage::kReady);
  job_.status = JobStatus::kRunning;
  if (!job_.running_time) job_.running_time = now_.wall;
  Tell("aimaster.round.running", "", "round " + std::to_string(Value(job_.round)) + ": all ranks run");
}

void Transition::On(const InstanceReady& input) {
  InstanceState* instance = Current(input.instance, input.attempt);
  if (instance != nullptr && !instance->ready) MarkReady(input.instance);
}

void Transition::MarkReady(InstanceIndex index) {
  Changed(index).ready = true;
  ++job_.tallies.ready;
  if (IsAsync(job_) && RenewalOf(job_.instances[Value(index)]) == Renewal::kNone && RoundIsUp()) {
    SetDeadline(index, std::nullopt);
    CloseOwnRecord(index, RestartResult::kRestarted);
  }
  if (job_.phase == Phase::kRunning && All(job_.tallies.ready)) FinishReadyStage();
}

// The new round is up: also the end of the restart that led to it.
void Transition::FinishReadyStage() {
  if (!job_.deadlines.start && job_.phase != Phase::kRunning) return;
  job_.deadlines.start.reset();
  EndStage(Stage::kReady);
  const std::optional<Duration> duration = CloseRecord(RestartResult::kRestarted);
  if (!duration) return;
  Tell("aimaster.round.ready", "",
       "round " + std::to_string(Value(job_.round)) + " is ready, " + FormatDuration(*duration) + " after the failure");
}

// The round could not be started for a reason that is no rank's: judged here, since there is nothing for a detector.
void Transition::FailStart(std::string fault, std::string message, std::optional<InstanceIndex> instance) {
  Judgement judgement;
  judgement.fault = std::move(fault);
  judgement.category = "system";
  judgement.message = std::move(message);
  judgement.source = ErrorSource::kProvider;
  judgement.retryable = Retryable::kYes;
  const auto unstarted = std::ranges::find(job_.instances, false, &InstanceState::started);
  if (!instance && unstarted != job_.instances.end()) {
    instance = InstanceIndex{static_cast<uint32_t>(unstarted - job_.instances.begin())};
  }
  judgement.root_instance = instance.value_or(InstanceIndex{});
  if (instance) judgement.root_node = job_.instances[Value(*instance)].node;
  judgement.reasons.push_back(judgement.message);
  job_.failure_began = now_;
  EndAllStages();
  job_.pending_stages.push_back({Stage::kDecide, now_, std::nullopt});
  Decide(judgement);
}

}  // namespace aimaster
