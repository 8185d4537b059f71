// World: one simulated job and all that it lives in. The parts call each other through it; what only the truth knows
// (which ranks live, how they ended) is kept here and shown to the checkers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "sim/break.h"
#include "sim/event_queue.h"
#include "sim/faults.h"
#include "sim/history.h"
#include "sim/journal_disk.h"
#include "sim/master_process.h"
#include "sim/network.h"
#include "sim/node.h"
#include "sim/provider.h"
#include "sim/random.h"
#include "sim/rank.h"
#include "sim/scenario.h"
#include "sim/supervisor.h"

namespace aimaster::sim {

struct Violation {
  std::string checker;
  std::string what;
  Duration at{};
};

struct MasterAddress {  // master.json
  uint64_t master = 0;
  Epoch epoch{};
};

class World : private Network::Ends {
 public:
  World(uint64_t seed, Break broken, bool traced);
  ~World() override;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // The whole story: faults, their end, the job's end, and the time that all has to go.
  void Run();
  std::optional<Violation> violation() const { return violation_; }
  uint64_t events() const { return events_; }

  void AddWatcher(std::unique_ptr<Watcher> watcher);
  void Complain(std::string_view checker, const std::string& what);

  bool is_traced() const { return traced_; }
  void Say(const std::string& who, const std::string& what) const;
  void SayWorld(const std::string& what) const {
    if (traced_) Say("*", what);
  }
  Break broken() const { return broken_; }

  // What the processes need.
  uint64_t NextAgentId() { return ++last_agent_; }
  // As this reader sees the file: on a network file system that may be what it was a while ago.
  std::optional<MasterAddress> ReadAddress(const std::string& reader);
  void WriteAddress(const SimMaster& master);
  void ShowOldAddress(const std::string& reader, const SimMaster& master, Duration for_so_long) {
    old_views_[reader] = {queue.now() + for_so_long, {master.id(), master.epoch()}};
  }
  Duration CommitDelay();

  // Masters.
  uint64_t StartMaster();
  SimMaster* FindMaster(uint64_t id);
  std::vector<SimMaster*> LiveMasters();
  SimMaster* AnyMaster();
  bool AnyMasterLives() const { return !masters_.empty(); }
  void CrashMaster(SimMaster& master, bool with_machine);
  void OnMasterGone(SimMaster& master, int status);
  void PersonStopsJob(bool at_once);
  bool stop_was_asked() const { return stop_was_asked_; }

  // Agents.
  SimNode& NodeFor(NodeIndex index);
  SimAgent* FindAgent(uint64_t id);
  void CrashAgent(SimNode& node);
  void KillAgent(SimNode& node, bool silently);
  void OnAgentGone(SimNode& node, bool in_order);

  // Ranks.
  RankLife& AddRank(SimNode& node, AttemptKey key, uint32_t rank, uint32_t local, uint64_t shim);
  RankLife* FindRank(AttemptKey key, uint32_t rank);
  const std::map<std::tuple<uint32_t, uint32_t, uint32_t>, RankLife*>& rank_lives() const { return rank_of_; }
  std::vector<RankLife*> LiveRanksOf(const SimNode& node) const { return node.ranks; }
  void TakePeersAlong(const RankLife& first);
  void HangAll();
  void OnRankPrinted(const RankLife& rank);
  void OnRankStarted(const RankLife& rank);
  void OnRankDied(RankLife& rank);

  // What is shown to the checkers.
  void OnDurable(const JournalDisk::Entry& entry);
  void OnAgentSends(const SimAgent& agent, const std::string& bytes);
  void OnMasterSends(uint64_t wire, const std::string& bytes);
  void OnAsksProvider(const std::vector<NodeIndex>& nodes);
  void OnAccepted(SimNode& node, uint64_t wire, bool command);

  Random random;
  const Scenario scenario;
  EventQueue queue;
  Machine master_machine;
  Network network;
  JournalDisk journal;
  History history;
  Provider provider{*this};
  Supervisor supervisor{*this};
  std::map<NodeIndex, std::unique_ptr<SimNode>> nodes;
  Duration commit_delay;
  bool faults_are_over = false;
  Duration faults_ceased{};

 private:
  void OnDialled(const Wire& wire) override;
  void OnUnreachable(const Wire& wire) override;
  void OnBytes(const Wire& wire, End to, const std::string& bytes) override;
  void OnOpened(const Wire& wire) override;
  void OnClosed(const Wire& wire, End to) override;

  bool RunUntil(Duration end);
  bool LookForForgotten();
  bool IsSettled() const;
  bool IsEmpty() const;
  void RunToTheEnd();

  const Break broken_;
  const bool traced_;
  Faults faults_{*this};
  std::vector<std::unique_ptr<Watcher>> watchers_;
  std::vector<Watcher*> watcher_list_;
  std::optional<Violation> violation_;
  uint64_t events_ = 0;
  std::tuple<Phase, uint32_t, uint32_t> wait_{};
  Duration waits_since_{};

  std::map<uint64_t, std::unique_ptr<SimMaster>> masters_;
  std::vector<std::unique_ptr<SimMaster>> dead_masters_;
  std::map<uint64_t, Epoch> epochs_;
  std::vector<MasterAddress> addresses_;
  std::map<std::string, std::pair<Duration, MasterAddress>> old_views_;  // until when who sees what
  uint64_t last_master_ = 0, last_agent_ = 0;
  bool stop_was_asked_ = false;

  std::vector<std::unique_ptr<SimAgent>> dead_agents_;
  std::vector<std::unique_ptr<RankLife>> all_ranks_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, RankLife*> rank_of_;
};

}  // namespace aimaster::sim
