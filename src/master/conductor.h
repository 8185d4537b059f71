// Conductor: all that a master decides, without the world. It joins the engine, the journal's order of things and the
// conversation with the agents; bytes, facts and the time go in, effects come out.
//
//   OnMessage, Stop, OnNodeLost, … ──▶ waiting ──BeginWrite──▶ engine ──▶ a batch for the journal
//                                                                              │ durable
//                      effects: transmit, provider, log, leave ◀── OnDurable ◀─┘
//
// The rule that all rests on: nothing that follows from an input is done, and no report is acknowledged, before the
// input is durable. It lives here, and not in the loop that owns sockets and files, so that the simulator can crash it
// at every point. Between BeginWrite and its answer the engine stands still, so a journal on a disk that hangs may be
// written by another thread, while heartbeats go on. One thread; not reentrant.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "aimaster/v1/agent.pb.h"
#include "detect/rule_table.h"
#include "engine/engine.h"
#include "engine/layout.h"
#include "journal/journal.h"
#include "master/agent_table.h"
#include "master/communication_watch.h"
#include "master/hang_watch.h"
#include "master/stack_collector.h"

namespace aimaster {

// What has to be done, in this order.
struct Transmit {  // one frame; a connection that is gone swallows it
  ConnectionId connection{};
  std::string bytes;
};
struct HangUp {  // after what was transmitted before; OnDisconnected follows unless the connection is of no agent
  ConnectionId connection{};
};
struct AcquireFromProvider {
  std::vector<NodeIndex> nodes;
};
struct IsolateAtProvider {
  NodeIndex node{};
  std::string reason;
};
struct ReleaseAtProvider {
  NodeIndex node{};
};
struct RecoverAtProvider {  // the agent is silent
  NodeIndex node{};
  std::string reason;
};
struct LookForSuccessor {};  // an agent has seen one: leave if master.json says so too
struct StoreStacks {         // answered by OnStacksStored
  stacks::Capture capture;
  RanksOfInstances instances;
};
struct Print {  // a line for the job's log
  std::string line;
};
struct Leave {  // the job has ended and everybody knows
  std::string why;
};
using Effect = std::variant<Transmit, HangUp, AcquireFromProvider, IsolateAtProvider, ReleaseAtProvider,
                            RecoverAtProvider, LookForSuccessor, StoreStacks, Print, Leave>;

class Conductor {
 public:
  // `epoch` is this master's, durable. `job_directory` is the one that agents see. `engine` knows what the journal
  // holds. Failures are judged by `rules`, which must outlive it.
  Conductor(Epoch epoch, std::filesystem::path job_directory, Engine engine = {},
            const RuleTable& rules = RuleTable::BuiltIn());

  // Called with each input that the engine is about to step, and with null when it has: should that be our end, the
  // next master knows over what.
  std::function<void(const Input* under_way)> on_step;

  // `spec` counts for a new job alone; `engine_change` is what this engine would have decided otherwise.
  void Begin(Moment now, const JobSpec& spec, std::string engine_change = {});
  // In place of Begin: no input is stepped, nothing is decided or acknowledged, and training goes on. Agents are
  // welcome, so that none thinks itself orphaned; a stop kills everything, since no later decision could.
  void BeginReadOnly(Moment now, std::string why);

  // A connection is nobody's until it has said Hello.
  void OnMessage(Moment now, ConnectionId connection, std::string_view bytes);
  void OnDisconnected(ConnectionId connection, const std::string& reason);
  void OnNodeDenied(Moment now, std::string reason) { Feed(now, NodeDenied{std::move(reason)}); }
  void OnNodeLost(Moment now, NodeIndex node, std::string reason) { Feed(now, NodeLost{node, std::move(reason)}); }
  void Stop(Moment now, bool at_once, std::string by);
  void Signal(int signal);
  // By a person. Why not, or empty: the capture is ordered, or under way.
  std::string RequestStacks(Moment now, std::string by);
  void OnStacksStored(Moment now, StacksCaptured stored) { Feed(now, std::move(stored)); }

  // When OnTime has to be called, if nothing else happens before.
  std::optional<Monotonic> NextDeadline() const;
  void OnTime(Moment now);
  // About every second: looks for agents that have fallen silent.
  void Watch(Moment now);

  // True when an input, or an acknowledgement that may go once all before it is durable, waits for the journal, and no
  // write is under way.
  bool WantsToWrite() const;
  // Lets the engine see what has come in. The batch, which may be empty, is to be appended in one piece; it, and
  // engine().job(), stay as they are until one of the next two is called.
  const JournalBatch& BeginWrite();
  void OnDurable(Moment now);
  // The batch is not in the journal; it will be part of the next one. A person's stop is carried out all the same: it
  // only ever makes less run.
  void OnNotDurable(const std::string& why);

  std::vector<Effect> TakeEffects() { return std::exchange(effects_, {}); }

  const Engine& engine() const { return engine_; }
  Epoch epoch() const { return epoch_; }
  // Why decisions wait; empty: they don't.
  const std::string& trouble() const { return trouble_; }

 private:
  void Feed(Moment now, Event event);
  void Do(Moment now, const Action& action);
  void TakeOver(Moment now);
  void Say(const StepResult& result);
  void SendCommands(const Action& action, std::optional<NodeIndex> only_to = {});
  void SendCommand(NodeIndex node, v1::Command command);  // of this master's epoch
  void Send(NodeIndex node, const v1::ToAgent& message);
  void Resend(NodeIndex node);

  void Greet(Moment now, ConnectionId connection, const v1::ToMaster& message);
  bool Welcome(Moment now, ConnectionId connection, const v1::Hello& hello);
  void TurnAway(NodeIndex node);
  void StopStrays(NodeIndex node, const v1::Hello& hello);
  void Refuse(ConnectionId connection, const std::string& reason);
  void Hear(Moment now, NodeIndex node, ConnectionId connection, std::string_view bytes);
  void TakeIn(Moment now, NodeIndex node, AgentLink& link, const v1::Report& report);
  void FindGaps(NodeIndex node, ConnectionId connection, const v1::Hello& hello);
  void LookForHang(Moment now);
  void LookAtCommunication(Moment now);
  bool LooksForHang() const;
  void TellPause(Moment now);
  void LookAtGaps(Moment now, NodeIndex node, ConnectionId connection);
  void LoseRanks(Moment now, NodeIndex node, const v1::AttemptId& id, const std::string& reason);
  void StoreStacksWhenDue(Moment now);
  void SayGoodbye(Moment now);
  void LeaveOnce(std::string why = {});
  void Note(std::string line) { effects_.push_back(Print{std::move(line)}); }

  Epoch epoch_;
  std::filesystem::path job_directory_;
  Engine engine_;
  const RuleTable* rules_;
  AgentTable agents_;
  HangWatch hangs_;
  CommunicationWatch communication_;
  // What should run on a node, for it is known to have started there, and what its agent did not name when it came.
  struct Gaps {
    ConnectionId connection = kNoConnection;
    uint32_t heartbeats = 0;  // since
    std::vector<v1::AttemptId> missing;
  };
  std::map<NodeIndex, Gaps> gaps_;

  StackCollector stacks_;

  std::vector<Input> waiting_;  // not stepped yet
  JournalBatch unwritten_;      // stepped, not durable yet
  // What is owed to agents once an append has succeeded: `owed_` by the one that is under way.
  struct Answers {
    std::map<NodeIndex, std::pair<std::string, uint64_t>> acknowledge;  // agent process and report number
    std::set<NodeIndex> resend;                                         // connected anew
    bool empty() const { return acknowledge.empty() && resend.empty(); }
  };
  Answers answers_, owed_;
  bool is_writing_ = false;
  bool taking_over_ = true;  // until the first append
  bool has_left_ = false;
  bool is_read_only_ = false;
  std::optional<Monotonic> farewell_;
  std::optional<Monotonic> not_before_;  // a deadline that was missed by far waits until then
  std::optional<Monotonic> last_watch_;
  bool is_pause_told_ = false;
  std::string trouble_;
  std::vector<NodePlace> places_;  // of the job as it is now; empty until they are needed
  std::vector<Effect> effects_;
};

}  // namespace aimaster
