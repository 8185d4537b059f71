#include "master/conductor.h"

#include <algorithm>

#include "core/check.h"
#include "core/file_name.h"
#include "core/overloaded.h"
#include "core/quote.h"
#include "detect/interval_advice.h"
#include "detect/judge_apart.h"
#include "detect/root_cause.h"
#include "master/commands.h"
#include "master/report_event.h"

namespace aimaster {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFarewell = 3s;                      // for agents to leave after the job's end
constexpr Duration kMissedByFar = 1s, kHearFirst = 1s;  // of a deadline
constexpr Duration kPauseTold = 30s;                    // in which no hang can be found
constexpr Duration kAway = 3s;                          // between two looks: it was we who were away, not the agents
constexpr uint32_t kHeartbeatsAfterReports = 2;         // of a new connection: the first may be on the wire before them

}  // namespace

Conductor::Conductor(Epoch epoch, std::filesystem::path job_directory, Engine engine, const RuleTable& rules)
    : epoch_(epoch),
      job_directory_(std::move(job_directory)),
      engine_(std::move(engine)),
      rules_(&rules),
      hangs_(epoch),
      communication_(epoch) {}

void Conductor::Begin(Moment now, const JobSpec& spec, std::string engine_change) {
  if (engine_.job().phase == Phase::kEnded) {  // the predecessor died over its goodbyes: agents that ask are told
    farewell_ = now.monotonic + kFarewell;
    return;
  }
  if (engine_.job().phase == Phase::kNew) Feed(now, JobSubmitted{spec});
  Feed(now, MasterStarted{epoch_, std::move(engine_change)});
}

void Conductor::BeginReadOnly(Moment now, std::string why) {
  is_read_only_ = true;
  Note(why);
  trouble_ = std::move(why);
  TakeOver(now);
}

void Conductor::Stop(Moment now, bool at_once, std::string by) {
  if (!is_read_only_) return Feed(now, StopRequested{at_once, std::move(by)});
  Note("stopping all that lives, asked for by " + by);
  const JobState& job = engine_.job();
  for (size_t i = 0; i < job.instances.size(); ++i) {
    const InstanceState& instance = job.instances[i];
    if (!instance.live) continue;
    const InstanceIndex index{static_cast<uint32_t>(i)};
    SendCommands(StopInstance{.instance = index, .attempt = instance.attempt, .node = instance.node, .at_once = true});
  }
}

// ---- input → engine → journal → actions ----

void Conductor::Feed(Moment now, Event event) { waiting_.push_back({now, std::move(event)}); }

bool Conductor::WantsToWrite() const {
  return !is_writing_ && !is_read_only_ &&
         (!waiting_.empty() || !unwritten_.empty() || !answers_.empty() || !owed_.empty());
}

const JournalBatch& Conductor::BeginWrite() {
  CHECK(!is_writing_);
  is_writing_ = true;
  places_.clear();
  for (Input& input : std::exchange(waiting_, {})) {
    input.event = engine_.Fit(std::move(input.event));
    if (on_step) on_step(&input);
    StepResult result = engine_.Step(input);
    if (on_step) on_step(nullptr);
    unwritten_.emplace_back(std::move(input), std::move(result));
  }
  for (auto& [node, report] : std::exchange(answers_.acknowledge, {})) owed_.acknowledge[node] = std::move(report);
  owed_.resend.merge(std::exchange(answers_.resend, {}));
  return unwritten_;
}

void Conductor::OnDurable(Moment now) {
  is_writing_ = false;
  if (!std::exchange(trouble_, {}).empty()) Note("the journal can be written again");
  const JournalBatch durable = std::exchange(unwritten_, {});
  const Answers owed = std::exchange(owed_, {});
  for (const auto& [input, result] : durable) Say(result);
  for (const auto& [node, report] : owed.acknowledge) {
    if (agents_[node].agent_id != report.first) continue;
    v1::ToAgent message;
    message.mutable_acknowledge()->set_sequence(report.second);
    Send(node, message);
  }
  if (std::exchange(taking_over_, false)) {
    TakeOver(now);
  } else {
    for (const auto& [input, result] : durable) {
      for (const Action& action : result.actions) Do(now, action);
    }
  }
  for (const NodeIndex node : owed.resend) Resend(node);
  for (const auto& [input, result] : durable) {
    if (const auto* lost = std::get_if<NodeLost>(&input.event)) {
      TurnAway(lost->node);
      stacks_.Lose(lost->node, "its node was lost: " + lost->reason);
    }
  }
  StoreStacksWhenDue(now);
}

// A node that counts as lost, and whose agent is there all the same: its ranks are dead to the job, and must be.
void Conductor::TurnAway(NodeIndex node) {
  const ConnectionId connection = agents_.ConnectionOf(node);
  if (connection == kNoConnection || engine_.job().phase == Phase::kEnded) return;
  Refuse(connection, "this node is no longer of this job");
  effects_.push_back(HangUp{connection});
}

void Conductor::OnNotDurable(const std::string& why) {
  is_writing_ = false;
  if (trouble_ != why) Note("the journal cannot be written, trying again: " + why);
  trouble_ = why;
  const JobState& job = engine_.job();
  if (job.phase != Phase::kStopping || job.stop_purpose != StopPurpose::kUserStop) return;
  for (const Action& action : engine_.Outstanding()) SendCommands(action);
}

// What was under way when a predecessor died is done again: every action may be.
void Conductor::TakeOver(Moment now) {
  std::vector<NodeIndex> joined;
  for (const auto& [index, node] : engine_.job().nodes) {
    if (node.joined && !node.lost) joined.push_back(index);
  }
  // They are expected from now on, so one that stays silent is noticed though this master has never heard of it.
  for (const NodeIndex node : joined) {
    AgentLink& link = agents_[node];
    link.last_heard = std::max(link.last_heard, now.monotonic);
  }
  effects_.push_back(AcquireFromProvider{std::move(joined)});
  if (is_read_only_) return;
  for (const auto& [index, node] : engine_.job().nodes) {  // nobody answers that a node is isolated: said again
    if (node.isolated) effects_.push_back(IsolateAtProvider{index, node.isolation_reason});
  }
  for (const Action& action : engine_.Outstanding()) Do(now, action);
}

void Conductor::Say(const StepResult& result) {
  for (const JobEvent& event : result.events) Note(event.type + ": " + event.message);
  for (const Decision& decision : result.decisions) {
    Note("decision " + decision.kind + ": " + decision.summary);
    for (const std::string& reason : decision.reasons) Note("  because " + reason);
  }
}

void Conductor::Do(Moment now, const Action& action) {
  std::visit(
      Overloaded{
          [this](const AcquireNodes& acquire) { effects_.push_back(AcquireFromProvider{acquire.nodes}); },
          [this](const IsolateNode& isolate) { effects_.push_back(IsolateAtProvider{isolate.node, isolate.reason}); },
          [this, now](const JudgeFailure& judge) {
            const JobState& job = engine_.job();
            const auto ranks = static_cast<uint32_t>(job.instance_of_rank.size());
            FailureJudged judged{.judgement_number = judge.judgement_number, .apart = judge.apart};
            if (judge.apart) {
              judged.others = JudgeApart(job.failures, ranks, *rules_);
              judged.judgement = std::move(judged.others.front());
              judged.others.erase(judged.others.begin());
            } else {
              judged.judgement = Judge(job.failures, ranks, *rules_, [&job](Rank rank) { return PlaceOf(job, rank); });
            }
            judged.judgement.advised_interval = AdviseInterval(job.failures, job.spec.fault_tolerance);
            Feed(now, std::move(judged));
          },
          [this, now, &action](const FinishJob&) {
            SendCommands(action);
            SayGoodbye(now);
          },
          [this, now, &action](const CaptureStacks& capture) {
            stacks_.Begin(now, capture, engine_.job());
            SendCommands(action);
          },
          [this, &action](const ShareRetryableErrors&) { SendCommands(action); },
          [this, &action](const ReservePort&) { SendCommands(action); },
          [this, &action](const StartInstance&) { SendCommands(action); },
          [this, &action](const StopInstance&) { SendCommands(action); },
          [this, &action](const CollectEvidence&) { SendCommands(action); }},
      action);
}

std::optional<Monotonic> Conductor::NextDeadline() const {
  // While the journal can't be written, decisions wait.
  std::optional<Monotonic> next = is_writing_ || !trouble_.empty() ? std::nullopt : engine_.NextDeadline();
  if (next && not_before_) next = std::max(*next, *not_before_);
  const std::optional<Monotonic> look = LooksForHang() ? hangs_.NextLook(engine_.job()) : std::nullopt;
  const std::optional<Monotonic> answers = LooksForHang() ? communication_.NextLook(engine_.job()) : std::nullopt;
  for (const std::optional<Monotonic>& own : {farewell_, stacks_.deadline(), look, answers}) {
    if (own && (!next || *own < *next)) next = own;
  }
  return next;
}

// A master that was stopped, or starved, hears first what has happened meanwhile: the answer that a deadline waits for
// may be in a socket since long.
void Conductor::OnTime(Moment now) {
  const std::optional<Monotonic> engine = engine_.NextDeadline();
  if (engine && *engine <= now.monotonic && !is_writing_ && trouble_.empty()) {
    if (!not_before_ && now.monotonic - *engine > kMissedByFar) {
      not_before_ = now.monotonic + kHearFirst;
    } else if (!not_before_ || *not_before_ <= now.monotonic) {
      not_before_.reset();
      Feed(now, Tick{});
    }
  }
  StoreStacksWhenDue(now);
  LookForHang(now);
  if (!farewell_ || now.monotonic < *farewell_) return;
  farewell_.reset();
  LeaveOnce("some agents did not say goodbye");
}

// ---- agents ----

void Conductor::Send(NodeIndex node, const v1::ToAgent& message) {
  // Dropped when the node is not connected: what is outstanding is sent again when it connects.
  const ConnectionId connection = agents_.ConnectionOf(node);
  if (connection != kNoConnection) effects_.push_back(Transmit{connection, message.SerializeAsString()});
}

void Conductor::SendCommands(const Action& action, std::optional<NodeIndex> only_to) {
  // Computed once for all instances of a start, and good until the engine steps.
  if (places_.empty() && std::holds_alternative<StartInstance>(action)) places_ = PlacesOnNodes(engine_.job());
  for (auto& [node, command] : MakeCommands(engine_.job(), places_, action, job_directory_)) {
    if (!only_to || node == *only_to) SendCommand(node, std::move(command));
  }
}

void Conductor::SendCommand(NodeIndex node, v1::Command command) {
  command.set_epoch(Value(epoch_));
  v1::ToAgent message;
  *message.mutable_command() = std::move(command);
  Send(node, message);
}

void Conductor::OnMessage(Moment now, ConnectionId connection, std::string_view bytes) {
  if (const std::optional<NodeIndex> node = agents_.NodeOf(connection)) {
    Hear(now, *node, connection, bytes);
    return;
  }
  v1::ToMaster message;
  const bool hello = message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) && message.has_hello();
  if (!hello || !Welcome(now, connection, message.hello())) effects_.push_back(HangUp{connection});
}

bool Conductor::Welcome(Moment now, ConnectionId connection, const v1::Hello& hello) {
  const NodeIndex node{hello.node()};
  const JobState& job = engine_.job();
  const auto known = job.nodes.find(node);
  if (hello.greatest_epoch() > Value(epoch_)) {
    effects_.push_back(LookForSuccessor{});  // an agent that a former master turned away would be lost to it
    return false;
  }
  const bool job_over = job.phase == Phase::kEnded;
  if (known == job.nodes.end() || known->second.lost || job_over) {
    // What still runs there belongs to nobody: its ranks count as dead, and others may have taken their place.
    // But it is told only what is durable. Until then it is hung up on, and dials again.
    if (unwritten_.empty()) Refuse(connection, job_over ? "the job has ended" : "this node is no longer of this job");
    return false;
  }
  if (!IsFileName(hello.node_name())) return false;  // the node's folder is called so
  AgentLink& link = agents_[node];
  // Its old connection is dead, whether we have noticed or not.
  if (link.connection != kNoConnection) effects_.push_back(HangUp{link.connection});
  agents_.Connect(node, connection);
  if (link.agent_id != hello.agent_id()) {
    if (!link.agent_id.empty()) {
      Note("node " + known->second.name + " has another agent than before, which found " +
           std::to_string(hello.live_size()) + " live attempts there");
    }
    link.agent_id = hello.agent_id();
    link.received = 0;
    const std::string trouble = hello.trouble().substr(0, kErrorTextMaxBytes);
    if (!trouble.empty()) {
      Note("node " + std::to_string(Value(node)) + ": " + (IsPrintable(trouble) ? trouble : Printable(trouble)));
    }
  }
  link.last_heard = now.monotonic;

  v1::ToAgent welcome;
  welcome.mutable_welcome()->set_epoch(Value(epoch_));
  *welcome.mutable_welcome()->mutable_job() = MakeJobConfig(job.spec);
  for (const std::string& text : job.retryable_texts) {
    welcome.mutable_welcome()->mutable_job()->add_retryable_errors(text);
  }
  Send(node, welcome);
  if (is_read_only_) return true;
  if (!known->second.joined) {
    Feed(now, NodeJoined{node, hello.node_name(), hello.address().empty() ? "127.0.0.1" : hello.address()});
  }
  answers_.resend.insert(node);
  FindGaps(node, connection, hello);
  StopStrays(node, hello);
  return true;
}

// An attempt that lives there and that no decision knows of, whatever brought it about: its successor may be running
// already. Every attempt was durable before its start was sent, so what the engine doesn't know can only be too old.
void Conductor::StopStrays(NodeIndex node, const v1::Hello& hello) {
  const JobState& job = engine_.job();
  for (const v1::AttemptId& id : hello.live()) {
    if (id.instance() < job.instances.size()) {
      const InstanceState& known = job.instances[id.instance()];
      if (known.live && known.node == node && Value(known.attempt) == id.attempt()) continue;
    }
    Note("node " + std::to_string(Value(node)) + " holds attempt " + std::to_string(id.attempt()) + " of instance " +
         std::to_string(id.instance()) + ", which has been given up: stopping it");
    v1::Command stop;
    *stop.mutable_stop_instance()->mutable_id() = id;
    stop.mutable_stop_instance()->set_at_once(true);
    SendCommand(node, std::move(stop));
  }
}

void Conductor::Refuse(ConnectionId connection, const std::string& reason) {
  v1::ToAgent message;
  message.mutable_refused()->set_epoch(Value(epoch_));
  message.mutable_refused()->set_job_over(true);
  message.mutable_refused()->set_reason(reason);
  effects_.push_back(Transmit{connection, message.SerializeAsString()});
}

// What this node has been asked for and has not answered; its former connection may have swallowed it.
void Conductor::Resend(NodeIndex node) {
  for (const Action& action : engine_.Outstanding(node)) SendCommands(action, node);
}

// What has not started yet is no gap: its start may not have arrived, and is sent again. But of what has started an
// agent finds the traces on its disk. One that it doesn't name has ended, and the agent is about to say so, or its
// traces are lost.
void Conductor::FindGaps(NodeIndex node, ConnectionId connection, const v1::Hello& hello) {
  const JobState& job = engine_.job();
  std::set<std::pair<uint32_t, uint32_t>> named;
  for (const v1::AttemptId& id : hello.live()) named.emplace(id.instance(), id.attempt());
  Gaps gaps{.connection = connection, .heartbeats = 0, .missing = {}};
  for (uint32_t i = 0; i < job.instances.size(); ++i) {
    const InstanceState& instance = job.instances[i];
    if (!instance.live || !instance.started || instance.node != node) continue;
    if (named.contains({i, Value(instance.attempt)})) continue;
    v1::AttemptId& id = gaps.missing.emplace_back();
    id.set_instance(i);
    id.set_attempt(Value(instance.attempt));
  }
  gaps_[node] = std::move(gaps);
}

// What an agent has to say is on the wire before its second heartbeat: by then it has told of every end that it knows.
// The rest is a failure like any other. The engine judges it, and has what may live there all the same stopped.
void Conductor::LookAtGaps(Moment now, NodeIndex node, ConnectionId connection) {
  const auto found = gaps_.find(node);
  if (found == gaps_.end() || found->second.connection != connection) return;
  if (++found->second.heartbeats < kHeartbeatsAfterReports) return;
  for (const v1::AttemptId& id : found->second.missing) {
    LoseRanks(now, node, id, "the agent of its node finds no record of it (files of its attempt are damaged or gone)");
  }
  gaps_.erase(found);
}

void Conductor::Hear(Moment now, NodeIndex node, ConnectionId connection, std::string_view bytes) {
  v1::ToMaster message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    effects_.push_back(HangUp{connection});
    return;
  }
  AgentLink& link = agents_[node];
  link.last_heard = now.monotonic;
  if (message.has_heartbeat()) {
    v1::ToAgent reply;
    reply.mutable_heartbeat_reply()->set_agent_wall_ns(message.heartbeat().wall_ns());
    reply.mutable_heartbeat_reply()->set_master_wall_ns(now.wall.since_epoch.count());
    Send(node, reply);
    if (!is_read_only_) {
      LookAtGaps(now, node, connection);
      hangs_.Heard(now.monotonic, node, message.heartbeat(), engine_.job());
      communication_.Heard(now.monotonic, node, message.heartbeat(), engine_.job());
      LookForHang(now);
    }
  }
  if (message.has_records() && !is_read_only_) {
    communication_.Take(node, message.records(), engine_.job());
    LookForHang(now);
  }
  if (message.has_report() && !is_read_only_) TakeIn(now, node, link, message.report());
}

// A finding is about the job as it is: while something waits to be stepped or to be durable, it is not known how that
// is.
bool Conductor::LooksForHang() const {
  return !is_read_only_ && !is_writing_ && trouble_.empty() && waiting_.empty() && unwritten_.empty();
}

void Conductor::LookForHang(Moment now) {
  if (!LooksForHang()) return;
  HangWatch::Answer answer = hangs_.Look(now.monotonic, engine_.job());
  for (const NodeIndex node : answer.ask) {
    v1::Command command;
    command.mutable_look_now()->set_number(answer.number);
    SendCommand(node, std::move(command));
  }
  if (answer.found) return Feed(now, std::move(*answer.found));
  LookAtCommunication(now);
}

void Conductor::LookAtCommunication(Moment now) {
  CommunicationWatch::Answer answer = communication_.Look(now.monotonic, engine_.job());
  for (const NodeIndex node : answer.ask) {
    v1::Command command;
    command.mutable_read_records()->set_number(answer.number);
    SendCommand(node, std::move(command));
  }
  if (answer.judged) Feed(now, std::move(*answer.judged));
}

void Conductor::TakeIn(Moment now, NodeIndex node, AgentLink& link, const v1::Report& report) {
  answers_.acknowledge[node] = {link.agent_id, std::max(link.received, report.sequence())};
  if (report.sequence() <= link.received) return;  // sent again before our acknowledgement arrived
  link.received = report.sequence();
  if (const v1::AttemptEnded& ended = report.attempt_ended(); !ended.lost_reason().empty()) {
    LoseRanks(now, node, ended.id(), ended.lost_reason());
  }
  if (report.has_stacks_captured()) {
    stacks_.Add(node, report.stacks_captured());
    StoreStacksWhenDue(now);
  }
  if (std::optional<Event> event = ReportEvent(report, node, engine_.job())) Feed(now, std::move(*event));
}

// Those ranks of an attempt of whom nothing was said, and of whom nothing will be: which ranks an attempt has, its
// agent may not know any more.
void Conductor::LoseRanks(Moment now, NodeIndex node, const v1::AttemptId& id, const std::string& reason) {
  const JobState& job = engine_.job();
  if (id.instance() >= job.instances.size()) return;
  const InstanceState& instance = job.instances[id.instance()];
  if (!instance.live || Value(instance.attempt) != id.attempt()) return;
  std::set<Rank> told;
  for (const Input& input : waiting_) {
    if (const auto* failed = std::get_if<RankFailed>(&input.event)) told.insert(failed->failure.rank);
    if (const auto* succeeded = std::get_if<RankSucceeded>(&input.event)) told.insert(succeeded->rank);
  }
  v1::Report report;
  v1::RankExited& exited = *report.mutable_rank_exited();
  *exited.mutable_id() = id;
  exited.set_lost_reason(reason);
  for (uint32_t local = 0; local < instance.ranks; ++local) {
    const Rank rank{Value(instance.first_rank) + local};
    if (job.rank_ended[Value(rank)] || told.contains(rank)) continue;
    exited.set_rank(Value(rank));
    exited.set_local(local);
    if (std::optional<Event> event = ReportEvent(report, node, job)) Feed(now, std::move(*event));
  }
}

void Conductor::OnDisconnected(ConnectionId connection, const std::string& reason) {
  const std::optional<NodeIndex> node = agents_.NodeOf(connection);
  if (!node) return;
  agents_.Disconnect(connection);
  if (engine_.job().phase != Phase::kEnded) {
    Note("agent of node " + std::to_string(Value(*node)) + " is disconnected: " + reason);
  } else if (farewell_ && agents_.connected() == 0) {
    LeaveOnce();
  }
}

void Conductor::Watch(Moment now) {
  const JobState& job = engine_.job();
  if (job.phase == Phase::kEnded || is_read_only_) return;
  const Duration since_last = now.monotonic - std::exchange(last_watch_, now.monotonic).value_or(now.monotonic);
  const Duration away = since_last > kAway ? since_last : Duration::zero();
  for (auto& [node, link] : agents_.links()) {
    link.last_heard = std::min(link.last_heard + away, now.monotonic);
    const Duration silence = now.monotonic - link.last_heard;
    if (silence < Duration(job.spec.timing.node_lost_timeout)) continue;
    link.last_heard = now.monotonic;
    if (job.nodes.at(node).lost) continue;
    Note("node " + std::to_string(Value(node)) + " has been silent for " + FormatDuration(silence));
    effects_.push_back(RecoverAtProvider{node, "silent for " + FormatDuration(silence)});
  }
  hangs_.Watch(now.monotonic, job);
  TellPause(now);
  LookForHang(now);
}

// Once when it has lasted, and once when it is over: a hang that is not found for it should not be a riddle.
void Conductor::TellPause(Moment now) {
  const auto& parameters = engine_.job().spec.fault_tolerance;
  if (!parameters.enable_job_hang_detection && !parameters.enable_job_exit_hang_detection) return;
  const std::optional<Monotonic> since = hangs_.paused_since();
  if (!since && std::exchange(is_pause_told_, false)) Note("all nodes are heard again, and a hang is looked for");
  if (!since || is_pause_told_ || now.monotonic - *since < kPauseTold) return;
  is_pause_told_ = true;
  std::string names;
  for (const NodeIndex node : hangs_.suspects()) {
    names += (names.empty() ? "" : ", ") + engine_.job().nodes.at(node).name;
  }
  Note("no hang can be found while these nodes are not heard, " + FormatDuration(now.monotonic - *since) +
       " by now: " + names);
}

void Conductor::Signal(int signal) {
  v1::Command command;
  command.mutable_signal_instances()->set_signal(signal);
  for (const auto& [node, link] : agents_.links()) SendCommand(node, command);
}

// ---- stacks ----

std::string Conductor::RequestStacks(Moment now, std::string by) {
  if (is_read_only_) return "no stacks can be taken while the journal is read only";
  const JobState& job = engine_.job();
  if (IsEnd(job.status)) return "the job has ended";
  const bool is_up = job.phase == Phase::kRunning || job.phase == Phase::kCollecting || job.phase == Phase::kJudging;
  if (!is_up || job.tallies.live == 0) return "no instance of the job runs at the moment, or they are being stopped";
  Feed(now, StacksRequested{std::move(by)});
  return {};
}

void Conductor::StoreStacksWhenDue(Moment now) {
  if (auto capture = stacks_.TakeWhenDue(now.monotonic))
    effects_.push_back(StoreStacks{std::move(*capture), GetRanksOfInstances(engine_.job())});
}

// ---- the end ----

void Conductor::SayGoodbye(Moment now) {
  farewell_ = now.monotonic + kFarewell;
  for (const auto& [index, node] : engine_.job().nodes) effects_.push_back(ReleaseAtProvider{index});
  if (agents_.connected() == 0) LeaveOnce();
}

void Conductor::LeaveOnce(std::string why) {
  if (!std::exchange(has_left_, true)) effects_.push_back(Leave{std::move(why)});
}

}  // namespace aimaster
