// Agent: one node's part of a job. It joins the conversation with the master, the attempts that live here, and the
// watches over their logs, cores and ports; each of them knows nothing of the others. One thread, one loop.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "agent/agent_file.h"
#include "agent/attempts.h"
#include "agent/conversation.h"
#include "agent/core_dump_watch.h"
#include "agent/lease_keeper.h"
#include "agent/log_watch.h"
#include "agent/master_link.h"
#include "agent/oom_kills.h"
#include "agent/owed_files.h"
#include "agent/port_holder.h"
#include "agent/record_watch.h"
#include "agent/sdk_api.h"
#include "agent/stack_helper.h"
#include "agent/tidings.h"
#include "agent/timer.h"
#include "core/ids.h"
#include "detect/pattern_matcher.h"
#include "wire/local_server.h"

namespace aimaster::agent {

struct AgentOptions {
  std::string job_directory;
  uint32_t node = 0;
  std::string node_name;
  std::string address = "127.0.0.1";  // what other nodes reach this one by
  std::string log_root;
  std::string shim_path;
  int node_lock = -1;  // see LockNode
};

// Exit codes. From 64 to 78 a respawner lets it be (shim --supervise).
inline constexpr int kExitUsage = 64;
inline constexpr int kExitCannotServe = 73;  // the node's directory can't be used
inline constexpr int kExitNodeTaken = 75;    // another agent serves this node
inline constexpr int kExitRefused = 77;      // the master wants nothing of us

std::string NodeDirectory(const AgentOptions& options);

class Agent : private SdkApi::Node {
 public:
  // The node is locked; `file` is what the last agent of this node knew, with our own identity in it.
  Agent(boost::asio::io_context& io, AgentOptions options, AgentFile file);

  void Run();    // takes over what runs here and dials; then the io_context does the rest, until it is stopped
  void Leave();  // SIGTERM: the ranks go on, the next agent finds them
  void OnChild() { attempts_.ReapChildren(); }
  int exit_code() const { return exit_code_; }

 private:
  // Who says something: an instance's attempt, and which rank of it, where that is known.
  struct Speaker {
    AttemptKey attempt;
    std::optional<ClaimedRank> rank;
  };
  // Why the agent ends once nothing runs here any more.
  enum class Ending { kNone, kOrphaned, kJobOver };

  AgentIdentity MakeIdentity();
  Attempts::Callbacks MakeAttemptCallbacks();
  MasterLink::Callbacks MakeLinkCallbacks();
  void TakeOver();
  std::string Trouble() const;  // what keeps us from doing all that we should
  void SaveFile();

  // The conversation.
  void Perform(const Steps& steps);
  void OnWelcome(const v1::JobConfig& job);
  void OnRefused(const Refuse& refusal);
  void Report(v1::Report report) { Perform(conversation_.Say(std::move(report))); }
  void Beat();
  void BeatSoon(int times);
  void SayHeartbeat();
  void LookAtLease();
  void RenewLease();

  // Orders.
  void Obey(const v1::Command& command);
  void SignalInstances(int signal);
  void StartInstance(const v1::StartInstance& start, uint64_t epoch);
  void ReservePort(const v1::ReservePort& order);
  void CollectEvidence(uint32_t collection);
  void AnswerCollections();
  void CaptureStacks(const v1::CaptureStacks& order);  // agent_stacks.cc
  void ReportStacks(uint32_t capture, std::string document);
  void SendRecords(uint64_t number);

  // What ranks say (agent_sdk.cc).
  void ServeRanks();
  Status AddRetryableErrors(const std::vector<std::string>& texts) override;
  Status SetStep(const SdkCaller& caller, uint64_t step, std::optional<double> loss) override;
  Status SetCheckpoint(const SdkCaller& caller, uint64_t step) override;
  Status SendMessage(const SdkCaller& caller, const std::string& content) override;
  Status SetHangInterval(const SdkCaller& caller, int64_t interval_ms) override;
  SdkApi::Node::State GetState() const override;
  Result<Speaker> FindSpeaker(const SdkCaller& caller) const;
  Result<Tidings::RankKey> FindLiveRank(const SdkCaller& caller);
  void OnRoundOf(const AttemptLife& attempt);
  void PassHangSettingOn();
  void PassCheckpointOn();
  void LearnRetryableErrors(std::span<const std::string> texts);
  void ReportRetryableErrors(const std::vector<std::string>& texts);
  void ShareRetryableErrors(std::vector<std::string> of_master);
  void AddWordsOfRank(const AttemptLife& attempt, const RankEnd& end, v1::RankExited& report);

  // Attempts.
  void OnRankEnded(const AttemptLife& attempt, RankEnd& end);
  void ReportRankEnd(const AttemptLife& attempt, const RankEnd& end);
  void OnEnded(const AttemptLife& attempt);

  // The end.
  void End(Ending ending, StopReason reason, bool at_once);
  void ExitWhenIdle();
  bool LeaveWhenReplaced();
  void Exit(int code);

  boost::asio::io_context& io_;
  AgentOptions options_;
  AgentFile file_;
  std::mt19937_64 random_{std::random_device{}()};
  const RulesInForce rules_;
  PatternMatcher matcher_{rules_};
  OomKills oom_kills_;
  LeaseKeeper lease_;
  bool told_lease_trouble_ = false;
  v1::JobConfig job_;
  Conversation conversation_;
  PortHolder ports_;
  uint32_t reservation_ = 0;  // the last one that was answered with a port
  std::vector<uint16_t> reserved_ports_;
  LogWatch logs_;
  RecordWatch records_;
  Attempts attempts_;
  CoreDumpWatch core_dumps_;
  MasterLink link_;
  std::map<uint32_t, Monotonic> collections_;  // not yet answered, with the latest time to do so
  SdkApi sdk_api_{*this};
  std::unique_ptr<LocalServer> sdk_socket_;  // null: it can't be served, and ranks are not told of it
  Tidings tidings_;                          // lost with us but for the hang interval, and told again soon
  bool hang_changed_ = false;                // since it was passed on
  std::optional<v1::Checkpoint> new_checkpoint_;
  StackHelper stack_helper_;
  uint64_t look_ = 0;  // the number of the last LookNow
  Ending ending_ = Ending::kNone;
  bool is_exiting_ = false;
  int exit_code_ = 0;
  OwedFiles owed_;
  std::string told_takeover_trouble_;
  Monotonic patient_until_;
  Timer takeover_timer_;
  Timer heartbeat_timer_;
  Timer first_heartbeats_timer_;
  Timer lease_timer_;
  Timer collection_timer_;
  Timer goodbye_timer_;
  Timer hang_timer_;
  bool hang_timer_runs_ = false;
  Timer checkpoint_timer_;
  bool checkpoint_timer_runs_ = false;
};

}  // namespace aimaster::agent
