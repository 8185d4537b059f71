#include "agent/conversation.h"

#include <algorithm>
#include <utility>

#include "agent/error_file.h"
#include "agent/frame_check.h"

namespace aimaster::agent {
namespace {

constexpr uint32_t kProtocol = 1;

Send ToSend(const v1::ToMaster& message) { return {message.SerializeAsString()}; }

Send ToSend(const v1::Report& report) {
  v1::ToMaster message;
  *message.mutable_report() = report;
  return ToSend(message);
}

bool IsSame(const v1::AttemptId& a, const v1::AttemptId& b) {
  return a.instance() == b.instance() && a.attempt() == b.attempt();
}

// Whether both tell the same fact, if perhaps with other details.
bool SaysTheSame(const v1::Report& a, const v1::Report& b) {
  if (a.body_case() != b.body_case()) return false;
  switch (a.body_case()) {
    case v1::Report::kAttemptStarted:
      return IsSame(a.attempt_started().id(), b.attempt_started().id());
    case v1::Report::kAttemptReady:
      return IsSame(a.attempt_ready().id(), b.attempt_ready().id());
    case v1::Report::kRankExited:
      return IsSame(a.rank_exited().id(), b.rank_exited().id()) && a.rank_exited().rank() == b.rank_exited().rank();
    case v1::Report::kAttemptEnded:
      return IsSame(a.attempt_ended().id(), b.attempt_ended().id());
    case v1::Report::kRetryableErrors:
      return std::ranges::equal(a.retryable_errors().texts(), b.retryable_errors().texts());
    case v1::Report::kPortReserved:
    case v1::Report::kPortRefused:
    case v1::Report::kEvidenceCollected:
    case v1::Report::kStacksCaptured:
    case v1::Report::kCustomMessage:  // said twice, it was meant twice
    case v1::Report::kCheckpoint:
    case v1::Report::BODY_NOT_SET:
      break;
  }
  return false;
}

uint64_t Nanoseconds(Monotonic time) { return static_cast<uint64_t>(time.since_origin.count()); }

void AddTidings(const Tidings& tidings, v1::Heartbeat& heartbeat) {
  if (const auto& hang = tidings.hang()) {
    v1::HangSetting& setting = *heartbeat.mutable_hang_setting();
    setting.set_interval_ms(hang->interval_ms);
    setting.set_set_at_ns(hang->set_at_ns);
    setting.set_round(hang->round);
  }
  if (const auto all = tidings.Overall()) {
    v1::Progress& progress = *heartbeat.mutable_progress();
    progress.set_step(all->step);
    progress.set_advanced_ns(Nanoseconds(all->advanced));
    if (all->checkpoint_step) {
      progress.set_checkpoint_step(*all->checkpoint_step);
      progress.set_checkpoint_ns(Nanoseconds(all->checkpoint_at));
    }
    if (all->loss) progress.set_loss(*all->loss);
  }
}

}  // namespace

Conversation::Conversation(AgentIdentity identity, uint64_t greatest_epoch)
    : identity_(std::move(identity)), greatest_epoch_(greatest_epoch) {}

Steps Conversation::OnOpen(const std::vector<AttemptKey>& live, const std::string& trouble) {
  state_ = State::kGreeting;
  v1::ToMaster message;
  v1::Hello& hello = *message.mutable_hello();
  hello.set_protocol(kProtocol);
  hello.set_node(identity_.node);
  hello.set_node_name(identity_.node_name);
  hello.set_agent_id(identity_.agent_id);
  hello.set_greatest_epoch(greatest_epoch_);
  hello.set_host_name(identity_.host_name);
  hello.set_boot_id(identity_.boot_id);
  hello.set_pid(identity_.pid);
  hello.set_address(identity_.address);
  hello.set_first_unacknowledged(queue_.first_unacknowledged());
  hello.set_trouble(trouble);
  for (const AttemptKey& key : live) {
    v1::AttemptId& id = *hello.add_live();
    id.set_instance(key.instance);
    id.set_attempt(key.attempt);
  }
  return {ToSend(message)};
}

Steps Conversation::OnMessage(std::string_view bytes, Wall now) {
  const Result<v1::ToAgent> message = ParseFrame(bytes);
  if (!message) return {Note{"ignored what the master sent: " + message.error().message}};
  switch (message->body_case()) {
    case v1::ToAgent::kWelcome:
      return OnWelcome(message->welcome());
    case v1::ToAgent::kRefused:
      return OnRefused(message->refused());
    case v1::ToAgent::kAcknowledge:
      // Whom we have not recognised as our master can't take reports off our hands.
      if (is_welcomed()) queue_.Acknowledge(message->acknowledge().sequence());
      return {};
    case v1::ToAgent::kCommand:
      return OnCommand(message->command());
    case v1::ToAgent::kHeartbeatReply: {
      const v1::HeartbeatReply& reply = message->heartbeat_reply();
      if (is_welcomed()) {
        clock_.Add(Wall{Duration(reply.agent_wall_ns())}, Wall{Duration(reply.master_wall_ns())}, now);
      }
      return {};
    }
    case v1::ToAgent::BODY_NOT_SET:
      break;
  }
  return {};
}

bool Conversation::Accept(uint64_t epoch, Steps& steps) {
  if (epoch < greatest_epoch_) return false;
  if (epoch > greatest_epoch_) {
    greatest_epoch_ = epoch;
    steps.push_back(SaveEpoch{epoch});
  }
  return true;
}

Steps Conversation::OnWelcome(const v1::Welcome& welcome) {
  if (state_ != State::kGreeting) return {Note{"ignored a second Welcome"}};
  Steps steps;
  if (!Accept(welcome.epoch(), steps)) {
    return {HangUp{"the master's epoch " + std::to_string(welcome.epoch()) + " is older than " +
                   std::to_string(greatest_epoch_) + ", another master has taken over"}};
  }
  state_ = State::kWelcomed;
  steps.push_back(Welcomed{welcome.job()});
  for (const v1::Report& report : queue_.unacknowledged()) steps.push_back(ToSend(report));
  return steps;
}

// A refusal ends ranks. A master that was left behind knows nothing of what its successor has started.
Steps Conversation::OnRefused(const v1::Refused& refused) {
  Steps steps;
  if (!Accept(refused.epoch(), steps)) {
    return {HangUp{"refused by a master of epoch " + std::to_string(refused.epoch()) + ", older than " +
                   std::to_string(greatest_epoch_) + ", which counts for nothing"}};
  }
  steps.push_back(Refuse{SafeText(refused.reason()), refused.job_over()});
  return steps;
}

Steps Conversation::OnCommand(const v1::Command& command) {
  if (!is_welcomed()) return {Note{"ignored a command that came before the Welcome"}};
  Steps steps;
  if (!Accept(command.epoch(), steps)) {
    return {Note{"ignored a command of epoch " + std::to_string(command.epoch()) + ", older than " +
                 std::to_string(greatest_epoch_)}};
  }
  steps.push_back(Order{command});
  return steps;
}

Steps Conversation::Say(v1::Report report) {
  const auto& kept = queue_.unacknowledged();
  if (std::ranges::any_of(kept, [&](const v1::Report& other) { return SaysTheSame(report, other); })) return {};
  const v1::Report& numbered = queue_.Push(std::move(report));
  if (!is_welcomed()) return {};
  return {ToSend(numbered)};
}

size_t Conversation::CountUnacknowledged(v1::Report::BodyCase kind) const {
  return static_cast<size_t>(std::ranges::count(queue_.unacknowledged(), kind, &v1::Report::body_case));
}

Steps Conversation::Heartbeat(Moment now, const LogActivity& activity, const Tidings& tidings,
                              std::optional<v1::Communication> communication) {
  if (!is_welcomed()) return {};
  const ClockEstimate clock = clock_.Estimate();
  v1::ToMaster message;
  v1::Heartbeat& heartbeat = *message.mutable_heartbeat();
  heartbeat.set_wall_ns(now.wall.since_epoch.count());
  heartbeat.set_monotonic_ns(now.monotonic.since_origin.count());
  heartbeat.set_clock_offset_ns(clock.offset.count());
  heartbeat.set_clock_uncertainty_ns(clock.uncertainty.count());
  heartbeat.set_log_bytes(activity.bytes);
  heartbeat.set_last_output_wall_ns(activity.last_output_wall_ns);
  if (activity.quiet) {
    heartbeat.set_silent_ns(activity.quiet->silent.count());
    if (activity.quiet->quietest_rank) heartbeat.set_quietest_rank(*activity.quiet->quietest_rank);
    heartbeat.set_quietest_silent_ns(activity.quiet->quietest_silent.count());
  }
  heartbeat.set_look(activity.look);
  AddTidings(tidings, heartbeat);
  if (communication) *heartbeat.mutable_communication() = std::move(*communication);
  return {ToSend(message)};
}

Steps Conversation::SendRecords(v1::Records records) {
  if (!is_welcomed()) return {};
  v1::ToMaster message;
  *message.mutable_records() = std::move(records);
  return {ToSend(message)};
}

}  // namespace aimaster::agent
