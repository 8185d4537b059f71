// Caretaker: what agents have in place of a conductor while the journal holds less than was durable. Think of the
// relief teacher without the class register: nobody is sent home because his name is not on the list.
//
// Agents are welcome, so that none thinks itself orphaned and no rank is stopped as a stray. Nothing is decided and no
// report is acknowledged, so agents keep what they have to say for a master that knows the job. A conductor with the
// journal's old state was rejected even with its decisions held back: nodes that joined after that state are strangers
// to it, and strangers it turns away, with their ranks.
//
// It owns no socket and no clock. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aimaster/v1/agent.pb.h"
#include "core/job_spec.h"
#include "core/time.h"
#include "master/agent_table.h"

namespace aimaster {

class Caretaker {
 public:
  // Frames for agents, in order; lines for the job's log.
  struct Answer {
    std::vector<std::pair<ConnectionId, std::string>> transmit;
    std::vector<std::string> log;
  };

  // `spec` as it was submitted; agents of these nodes are expected.
  Caretaker(Epoch epoch, const JobSpec& spec, std::set<NodeIndex> expected);

  Answer OnMessage(Wall now, ConnectionId connection, std::string_view bytes);
  void OnDisconnected(ConnectionId connection) { agents_.erase(connection); }
  // Everything that runs is stopped, also what has yet to be heard of.
  Answer Stop(bool at_once);
  Answer Signal(int signal);

  bool stops() const { return stops_at_once_.has_value(); }
  // A stop was asked for, all expected agents have been heard, and nothing of the job runs on any of them.
  bool has_stopped() const;

 private:
  using AttemptKey = std::pair<uint32_t, uint32_t>;  // instance, attempt
  struct Agent {
    NodeIndex node{};
    std::set<AttemptKey> live;
  };

  void Greet(ConnectionId connection, const v1::Hello& hello, Answer& answer);
  void Note(Agent& agent, const v1::Report& report, Answer& answer);
  void StopAll(ConnectionId connection, const Agent& agent, Answer& answer) const;
  void Command(ConnectionId connection, v1::Command command, Answer& answer) const;

  const Epoch epoch_;
  const v1::JobConfig job_;
  const std::set<NodeIndex> expected_;
  std::map<ConnectionId, Agent> agents_;
  std::optional<bool> stops_at_once_;
};

}  // namespace aimaster
