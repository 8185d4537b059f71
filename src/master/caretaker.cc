#include "master/caretaker.h"

#include <algorithm>

#include "master/commands.h"

namespace aimaster {

Caretaker::Caretaker(Epoch epoch, const JobSpec& spec, std::set<NodeIndex> expected)
    : epoch_(epoch), job_(MakeJobConfig(spec)), expected_(std::move(expected)) {}

Caretaker::Answer Caretaker::OnMessage(Wall now, ConnectionId connection, std::string_view bytes) {
  Answer answer;
  v1::ToMaster message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return answer;
  if (message.has_hello()) Greet(connection, message.hello(), answer);
  const auto agent = agents_.find(connection);
  if (agent == agents_.end()) return answer;
  if (message.has_heartbeat()) {
    v1::ToAgent reply;
    reply.mutable_heartbeat_reply()->set_agent_wall_ns(message.heartbeat().wall_ns());
    reply.mutable_heartbeat_reply()->set_master_wall_ns(now.since_epoch.count());
    answer.transmit.emplace_back(connection, reply.SerializeAsString());
  }
  if (message.has_report()) Note(agent->second, message.report(), answer);
  return answer;
}

void Caretaker::Greet(ConnectionId connection, const v1::Hello& hello, Answer& answer) {
  if (hello.greatest_epoch() > Value(epoch_)) return;  // of a later master than we are
  Agent& agent = agents_[connection];
  agent.node = NodeIndex{hello.node()};
  for (const v1::AttemptId& id : hello.live()) agent.live.emplace(id.instance(), id.attempt());
  v1::ToAgent welcome;
  welcome.mutable_welcome()->set_epoch(Value(epoch_));
  *welcome.mutable_welcome()->mutable_job() = job_;
  answer.transmit.emplace_back(connection, welcome.SerializeAsString());
  answer.log.push_back("the agent of node " + std::to_string(hello.node()) + " is here, with " +
                       std::to_string(agent.live.size()) + " live attempts that go on");
  if (stops()) StopAll(connection, agent, answer);
}

// The journal does not hear of it, so the log is all that people have.
void Caretaker::Note(Agent& agent, const v1::Report& report, Answer& answer) {
  if (report.has_attempt_ended()) {
    const v1::AttemptId& id = report.attempt_ended().id();
    agent.live.erase({id.instance(), id.attempt()});
  }
  if (!report.has_rank_exited()) return;
  const v1::RankExited& exit = report.rank_exited();
  const std::string how = exit.how_case() == v1::RankExited::kCode     ? "code " + std::to_string(exit.code())
                          : exit.how_case() == v1::RankExited::kSignal ? "signal " + std::to_string(exit.signal())
                                                                       : "a status that is not known";
  answer.log.push_back("rank " + std::to_string(exit.rank()) + " (instance " + std::to_string(exit.id().instance()) +
                       ", attempt " + std::to_string(exit.id().attempt()) + ") has ended with " + how +
                       "; it is not recorded");
}

Caretaker::Answer Caretaker::Stop(bool at_once) {
  Answer answer;
  stops_at_once_ = at_once || stops_at_once_.value_or(false);
  for (const auto& [connection, agent] : agents_) StopAll(connection, agent, answer);
  return answer;
}

void Caretaker::StopAll(ConnectionId connection, const Agent& agent, Answer& answer) const {
  for (const auto& [instance, attempt] : agent.live) {
    v1::Command command;
    command.mutable_stop_instance()->mutable_id()->set_instance(instance);
    command.mutable_stop_instance()->mutable_id()->set_attempt(attempt);
    command.mutable_stop_instance()->set_at_once(*stops_at_once_);
    Command(connection, std::move(command), answer);
  }
}

Caretaker::Answer Caretaker::Signal(int signal) {
  Answer answer;
  for (const auto& [connection, agent] : agents_) {
    v1::Command command;
    command.mutable_signal_instances()->set_signal(signal);
    Command(connection, std::move(command), answer);
  }
  return answer;
}

void Caretaker::Command(ConnectionId connection, v1::Command command, Answer& answer) const {
  command.set_epoch(Value(epoch_));
  v1::ToAgent message;
  *message.mutable_command() = std::move(command);
  answer.transmit.emplace_back(connection, message.SerializeAsString());
}

bool Caretaker::has_stopped() const {
  if (!stops()) return false;
  std::set<NodeIndex> heard;
  for (const auto& [connection, agent] : agents_) {
    if (!agent.live.empty()) return false;
    heard.insert(agent.node);
  }
  return std::ranges::includes(heard, expected_);
}

}  // namespace aimaster
