// SimAgent: one agent process of a node. The conversation with the master is the real one (agent/conversation.h), as
// are the back-off and the count of the lease; around them, this is a mirror of agent.cc, attempts.cc and
// attempt_life.cc over the simulated disk. What matters at a crash is the order in which they write, start and tell, so
// that order is theirs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/attempt_state.h"
#include "agent/backoff.h"
#include "agent/conversation.h"
#include "agent/lease_count.h"
#include "sim/node_disk.h"
#include "sim/process.h"
#include "sim/rank.h"

namespace aimaster::sim {

class World;
struct SimNode;

inline v1::AttemptId ToId(AttemptKey key) {
  v1::AttemptId id;
  id.set_instance(key.instance);
  id.set_attempt(key.attempt);
  return id;
}

inline AttemptKey ToKey(const v1::AttemptId& id) { return {id.instance(), id.attempt()}; }

inline std::string ToText(AttemptKey key) {
  return "instance " + std::to_string(key.instance) + " attempt " + std::to_string(key.attempt);
}

class SimAgent {
 public:
  SimAgent(World& world, SimNode& node, uint64_t id);

  void Begin();
  void Leave();  // SIGTERM: what runs goes on

  // From the network.
  void OnOpened(uint64_t wire);
  void OnBytes(uint64_t wire, const std::string& bytes);
  void OnClosed(uint64_t wire);
  // From the node.
  void OnAddressChanged();
  void Look(AttemptKey key);  // something in its directory changed
  void OnShimGone(AttemptKey key, uint64_t shim);

  uint64_t id() const { return id_; }
  const std::string& text_id() const { return text_id_; }
  uint64_t wire() const { return wire_; }
  bool is_welcomed() const { return conversation_.is_welcomed(); }
  Process process;

 private:
  enum class Ending { kNone, kOrphaned, kJobOver };
  struct Life {
    agent::AttemptState state = agent::AttemptState::kClaimed;
    uint64_t shim = 0;  // held; 0: none
    bool has_started = false;
    bool told_ready = false;
    bool never_ran = false;
    bool was_ended_early = false;  // by a break
    std::string lost_reason;
    std::vector<std::optional<v1::Report>> ends;  // by local rank
    int empty_passes = 0;
    bool has_ended() const { return state == agent::AttemptState::kEnded; }
  };

  // The link, as in master_link.cc.
  void Dial();
  void HangUp(const std::string& reason);
  void OnLinkClosed();
  void WatchSilence();

  void Perform(const agent::Steps& steps);
  void OnWelcome(const v1::JobConfig& job);
  void Report(v1::Report report) { Perform(conversation_.Say(std::move(report))); }
  void Beat();
  void SayHeartbeat();
  agent::LogActivity Activity() const;
  void BeginLease();
  void WriteLease(Monotonic renewed);
  void RenewLease();
  void LookAtLease();
  void Obey(const v1::Command& command);
  void ReservePort(const v1::ReservePort& order);
  void AnswerCollections();
  bool DrainExits();

  // Attempts, as in attempts.cc.
  void AdoptAll();
  void Adopt(AttemptKey key);
  void Start(const v1::StartInstance& start);
  void Stop(AttemptKey key, bool at_once);
  void StopAll(bool at_once, Death why);
  void ReportNeverStarted(AttemptKey key);
  std::vector<AttemptKey> Live() const;

  // One attempt, as in attempt_life.cc.
  Life& Add(AttemptKey key);
  AttemptDirectory& DirectoryOf(AttemptKey key);
  void StopLife(AttemptKey key, bool at_once, Death why);
  void WatchShim(AttemptKey key, uint64_t shim);
  void HandleShimGone(AttemptKey key);
  void CollectExits(AttemptKey key);
  void SetRankEnd(AttemptKey key, uint32_t local, std::optional<agent::RankExitFile> exit);
  void EndWithShim(AttemptKey key);
  void Sweep(AttemptKey key);
  void Finish(AttemptKey key, agent::AttemptInput input);
  void ReportAll(AttemptKey key);
  void ReportStarted(AttemptKey key);
  void ReportEnded(AttemptKey key);
  std::string Disguise(const std::string& bytes) const;
  void EndEarly(AttemptKey key);
  void CountAgain(AttemptKey key);

  void End(Ending ending, Death why, bool at_once);
  void ExitWhenIdle();
  void Say(const std::string& text) const;

  World& world_;
  SimNode& node_;
  const uint64_t id_;
  const std::string text_id_;
  agent::Conversation conversation_;
  agent::Backoff backoff_;
  v1::JobConfig job_;
  agent::LeaseCount lease_;
  uint64_t wire_ = 0;
  bool is_open_ = false;
  Monotonic last_heard_;
  bool dial_waits_ = false;
  std::map<AttemptKey, Life> attempts_;
  std::map<uint32_t, Monotonic> collections_;
  uint64_t look_ = 0;
  uint32_t reservation_ = 0;
  std::vector<uint32_t> reserved_ports_;
  Ending ending_ = Ending::kNone;
  Alarm dial_alarm_{process}, silence_alarm_{process}, collection_alarm_{process}, lease_alarm_{process};
};

}  // namespace aimaster::sim
