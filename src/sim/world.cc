#include "sim/world.h"

#include <algorithm>
#include <cstdio>

#include "sim/checkers.h"

namespace aimaster::sim {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kEventsMax = 5'000'000;
// For a dead machine to be known as dead, a connection to be made anew, and a shim to start its ranks.
constexpr Duration kAnsweredWithin = 45s;  // a commit on a slow disk, begun before the last fault, takes up to 40 s
constexpr Duration kLook = 500ms;          // how often the world is looked at as a whole

// In so much time every job has come to its end or to its ranks, once nothing goes wrong any more: all rounds that may
// still be tried, each with the longest that its parts may take.
Duration PatienceOf(const JobSpec& spec) {
  const Duration round = Duration(spec.timing.start_timeout) + Duration(spec.timing.stop_grace) +
                         2 * Duration(spec.timing.node_lost_timeout) + 60s;
  return 4 * round + 240s;
}

Duration LeavePatienceOf(const JobSpec& spec) {
  return Duration(spec.timing.orphan_timeout) * 2 + Duration(spec.timing.stop_grace) * 2 + 120s;
}

}  // namespace

World::World(uint64_t seed, Break broken, bool traced)
    : random(seed),
      scenario(DrawScenario(random)),
      master_machine(queue, random),
      network(queue, random, *this, scenario.network_delay),
      journal(broken),
      commit_delay(scenario.commit_delay),
      broken_(broken),
      traced_(traced) {
  for (auto& checker : MakeCheckers(*this)) AddWatcher(std::move(checker));
}

World::~World() = default;

void World::AddWatcher(std::unique_ptr<Watcher> watcher) {
  // A break is made to be found by its checker; what others find of it proves nothing.
  if (broken_ != Break::kNone && watcher->name() != InfoOf(broken_).checker) return;
  watcher_list_.push_back(watcher.get());
  watchers_.push_back(std::move(watcher));
}

void Watcher::Complain(const std::string& what) { world_.Complain(name(), what); }

void World::Complain(std::string_view checker, const std::string& what) {
  if (violation_ || (broken_ != Break::kNone && checker != InfoOf(broken_).checker)) return;
  violation_ = Violation{std::string(checker), what, queue.now()};
  SayWorld("VIOLATION of " + violation_->checker + ": " + what);
}

void World::Say(const std::string& who, const std::string& what) const {
  std::printf("[%10.4f] %-22s %s\n", static_cast<double>(queue.now().count()) / 1e9, who.c_str(), what.c_str());
}

// ---- the story ----

void World::Run() {
  supervisor.Resume();
  faults_.Schedule();
  RunUntil(scenario.faults_until);
  faults_are_over = true;
  faults_ceased = queue.now();
  SayWorld("nothing goes wrong any more");
  faults_.Cease();
  RunToTheEnd();
}

bool World::RunUntil(Duration end) {
  while (!violation_ && queue.RunNext(end)) {
    if (++events_ > kEventsMax) Complain("progress", "so many events that something goes round in circles");
  }
  return !violation_;
}

void World::RunToTheEnd() {
  const Duration settle_by = queue.now() + PatienceOf(scenario.spec);
  for (int settled = 0; settled < 4;) {
    // Somebody sees that nothing leads the job.
    if (!AnyMasterLives() && !supervisor.is_alive()) supervisor.Resume();
    if (!RunUntil(queue.now() + kLook)) return;
    settled = history.has_finished() ? 4 : IsSettled() ? settled + 1 : 0;
    if (!LookForForgotten()) return;
    if (settled == 0 && queue.now() > settle_by) {
      return Complain("progress", "the job has neither ended nor do all its ranks run, " +
                                      FormatDuration(PatienceOf(scenario.spec)) + " after the last fault; phase " +
                                      std::to_string(static_cast<int>(history.job().phase)));
    }
  }
  const Duration stop_by = queue.now() + PatienceOf(scenario.spec);
  while (!history.has_finished()) {
    PersonStopsJob(false);
    if (!RunUntil(queue.now() + 5s)) return;
    if (queue.now() > stop_by) return Complain("progress", "the job was told to stop and does not");
  }
  const Duration gone_by = queue.now() + LeavePatienceOf(scenario.spec);
  for (Watcher* watcher : watcher_list_) watcher->OnJournalClosed();
  while (!violation_ && !IsEmpty() && queue.now() < gone_by) RunUntil(queue.now() + kLook);
  if (violation_) return;
  for (Watcher* watcher : watcher_list_) watcher->OnNothingMoreToDo();
}

// An order that nobody answers though nothing is wrong has been forgotten, even where a timeout would cover it up.
bool World::LookForForgotten() {
  const JobState& job = history.job();
  uint32_t unstarted = 0;
  for (const InstanceState& instance : job.instances) unstarted += instance.live && !instance.started;
  const bool waits = job.phase == Phase::kReserving || (job.phase == Phase::kRunning && unstarted > 0);
  const std::tuple<Phase, uint32_t, uint32_t> wait{job.phase, job.reservation, unstarted};
  if (!waits || wait != wait_) {
    wait_ = wait;
    waits_since_ = queue.now();
  } else if (queue.now() - waits_since_ > kAnsweredWithin) {
    Complain("progress", std::string(job.phase == Phase::kReserving ? "a port" : "a start") +
                             " has been waited for in vain for " + FormatDuration(queue.now() - waits_since_));
  }
  return !violation_;
}

bool World::IsSettled() const {
  const JobState& job = history.job();
  if (job.phase != Phase::kRunning) return false;
  for (size_t rank = 0; rank < job.instance_of_rank.size(); ++rank) {
    const InstanceIndex index = job.instance_of_rank[rank];
    const InstanceState& instance = job.instances[Value(index)];
    const auto found = rank_of_.find({Value(index), Value(instance.attempt), static_cast<uint32_t>(rank)});
    if (!instance.started || found == rank_of_.end()) return false;
    if (!found->second->is_alive && found->second->code != 0) return false;
  }
  return true;
}

bool World::IsEmpty() const {
  return masters_.empty() && std::ranges::all_of(nodes, [](const auto& entry) {
           return entry.second->ranks.empty() && entry.second->shims.empty() && entry.second->agent == nullptr;
         });
}

// ---- masters ----

uint64_t World::StartMaster() {
  const uint64_t id = ++last_master_;
  SimMaster* master = (masters_[id] = std::make_unique<SimMaster>(*this, id)).get();
  master->process.After(random.Delay(500ms), [master] { master->Begin(); });
  return id;
}

SimMaster* World::FindMaster(uint64_t id) {
  const auto found = masters_.find(id);
  return found == masters_.end() ? nullptr : found->second.get();
}

std::vector<SimMaster*> World::LiveMasters() {
  std::vector<SimMaster*> all;
  for (auto& [id, master] : masters_) all.push_back(master.get());
  return all;
}

SimMaster* World::AnyMaster() {
  if (masters_.empty()) return nullptr;
  return std::next(masters_.begin(), static_cast<int64_t>(random.Below(masters_.size())))->second.get();
}

void World::CrashMaster(SimMaster& master, bool with_machine) {
  SayWorld("master-" + std::to_string(master.id()) + " dies");
  if (with_machine) network.Drop(End::kMaster, master.id(), true);
  OnMasterGone(master, 137);
}

void World::OnMasterGone(SimMaster& master, int status) {
  const uint64_t id = master.id();
  master.process.Kill();
  master.OnDeath();
  network.Drop(End::kMaster, id, false);
  provider.OnMasterGone(id);
  dead_masters_.push_back(std::move(masters_.at(id)));
  masters_.erase(id);
  supervisor.OnMasterGone(id, status);
}

void World::PersonStopsJob(bool at_once) {
  stop_was_asked_ = true;
  SimMaster* newest = masters_.empty() ? nullptr : masters_.rbegin()->second.get();
  if (newest == nullptr) {
    if (faults_are_over && !supervisor.is_alive()) supervisor.Resume();
    return;
  }
  SayWorld(at_once ? "a person stops the job at once" : "a person stops the job");
  newest->process.Run([newest, at_once] {
    if (newest->is_listening()) newest->Stop(at_once);
  });
}

void World::WriteAddress(const SimMaster& master) {
  if (!addresses_.empty() && !faults_are_over) {
    const auto see_later = [this](const std::string& reader) {
      if (random.Chance(scenario.stale_address))
        old_views_[reader] = {queue.now() + random.Time(0s, 60s), addresses_.back()};
    };
    for (const auto& [index, node] : nodes) see_later(node->name);
    for (const auto& [id, other] : masters_) see_later("master-" + std::to_string(id));
  }
  addresses_.push_back({master.id(), master.epoch()});
  epochs_[master.id()] = master.epoch();
  for (auto& [index, node] : nodes) {
    if (SimAgent* agent = node->agent.get()) agent->process.Run([agent] { agent->OnAddressChanged(); });
  }
}

std::optional<MasterAddress> World::ReadAddress(const std::string& reader) {
  if (addresses_.empty()) return std::nullopt;
  const auto old = old_views_.find(reader);
  if (old != old_views_.end() && queue.now() < old->second.first && !faults_are_over) return old->second.second;
  const bool sees_older = scenario.stale_address > 0 && !faults_are_over && random.Chance(0.15);
  return sees_older ? addresses_[random.Below(addresses_.size())] : addresses_.back();
}

Duration World::CommitDelay() { return random.Delay(commit_delay); }

// ---- agents ----

SimNode& World::NodeFor(NodeIndex index) {
  auto& node = nodes[index];
  if (node == nullptr) node = std::make_unique<SimNode>(*this, index);
  return *node;
}

SimAgent* World::FindAgent(uint64_t id) {
  for (auto& [index, node] : nodes) {
    if (node->agent != nullptr && node->agent->id() == id) return node->agent.get();
  }
  return nullptr;
}

void World::KillAgent(SimNode& node, bool silently) {
  const uint64_t id = node.agent->id();
  node.agent->process.Kill();
  network.Drop(End::kAgent, id, silently);
  dead_agents_.push_back(std::move(node.agent));
}

void World::CrashAgent(SimNode& node) {
  SayWorld("the agent of " + node.name + " dies");
  KillAgent(node, false);
  provider.OnAgentGone(node, false);
}

void World::OnAgentGone(SimNode& node, bool in_order) {
  KillAgent(node, false);
  provider.OnAgentGone(node, in_order);
}

// ---- ranks ----

RankLife& World::AddRank(SimNode& node, AttemptKey key, uint32_t rank, uint32_t local, uint64_t shim) {
  all_ranks_.push_back(std::make_unique<RankLife>(*this, node, key, rank, local, shim));
  RankLife& life = *all_ranks_.back();
  rank_of_[{key.instance, key.attempt, rank}] = &life;
  return life;
}

RankLife* World::FindRank(AttemptKey key, uint32_t rank) {
  const auto found = rank_of_.find({key.instance, key.attempt, rank});
  return found == rank_of_.end() ? nullptr : found->second;
}

void World::OnRankStarted(const RankLife& rank) {
  if (traced_) {
    Say(rank.node.name, "rank " + std::to_string(rank.rank) + " begins, attempt " + std::to_string(rank.key.attempt));
  }
  rank.node.ranks.push_back(const_cast<RankLife*>(&rank));
  for (Watcher* watcher : watcher_list_) watcher->OnRankStarted(rank);
}

void World::OnRankDied(RankLife& rank) {
  if (traced_) {
    Say(rank.node.name, "rank " + std::to_string(rank.rank) + " ends " + std::string(Name(rank.death)) + ", attempt " +
                            std::to_string(rank.key.attempt) +
                            (rank.code ? ", code " + std::to_string(*rank.code)
                                       : ", signal " + std::to_string(rank.signal.value_or(0))));
  }
  std::erase(rank.node.ranks, &rank);
  for (Watcher* watcher : watcher_list_) watcher->OnRankDied(rank);
  SimShim* shim = rank.node.FindShim(rank.shim);
  if (shim != nullptr) shim->process.Run([shim, &rank] { shim->OnRankDied(rank); });
}

// A peer that waits for the dead one gives up sooner or later, and blames the network.
void World::TakePeersAlong(const RankLife& first) {
  for (auto& [index, node] : nodes) {
    for (RankLife* peer : node->ranks) {
      if (peer == &first || !random.Chance(scenario.ranks.cascades)) continue;
      peer->process.After(random.Delay(20s), [peer] {
        if (peer->words.empty()) peer->words = "NcclRemoteError";
        peer->Fail();
      });
    }
  }
}

// All wait for one.
void World::HangAll() {
  for (auto& [index, node] : nodes) {
    for (RankLife* rank : node->ranks) rank->hangs = true;
  }
}

// ---- what is shown ----

void World::OnRankPrinted(const RankLife& rank) {
  for (Watcher* watcher : watcher_list_) watcher->OnRankPrinted(rank);
}

void World::OnDurable(const JournalDisk::Entry& entry) { history.Commit(entry.decoded, watcher_list_); }

void World::OnAgentSends(const SimAgent& agent, const std::string& bytes) {
  v1::ToMaster message;
  if (!message.ParseFromString(bytes) || !message.has_report()) return;
  for (Watcher* watcher : watcher_list_) watcher->OnReport(agent.id(), message.report());
}

void World::OnMasterSends(uint64_t wire, const std::string& bytes) {
  const Wire* connection = network.Find(wire);
  v1::ToAgent message;
  if (connection == nullptr || !message.ParseFromString(bytes)) return;
  for (Watcher* watcher : watcher_list_) watcher->OnFrameToAgent(connection->agent, message);
}

void World::OnAsksProvider(const std::vector<NodeIndex>& asked) {
  for (Watcher* watcher : watcher_list_) watcher->OnAsksProvider(asked);
}

void World::OnAccepted(SimNode& node, uint64_t wire, bool command) {
  const Wire* connection = network.Find(wire);
  if (connection == nullptr) return;
  for (Watcher* watcher : watcher_list_) watcher->OnAccepted(node.index, epochs_[connection->master], command);
}

// ---- what arrives ----

void World::OnDialled(const Wire& wire) {
  SimMaster* master = FindMaster(wire.master);
  if (master == nullptr || !master->is_listening()) {
    network.Refuse(wire.id);
    return;
  }
  master->process.Run([this, id = wire.id] { network.Accept(id); });
}

void World::OnUnreachable(const Wire& wire) { OnClosed(wire, End::kAgent); }

void World::OnOpened(const Wire& wire) {
  SimAgent* agent = FindAgent(wire.agent);
  if (agent != nullptr) agent->process.Run([agent, id = wire.id] { agent->OnOpened(id); });
}

void World::OnBytes(const Wire& wire, End to, const std::string& bytes) {
  if (to == End::kMaster) {
    SimMaster* master = FindMaster(wire.master);
    if (master != nullptr) master->process.Run([master, id = wire.id, bytes] { master->OnBytes(id, bytes); });
    return;
  }
  SimAgent* agent = FindAgent(wire.agent);
  if (agent == nullptr) return;
  agent->process.Run([this, agent, node = wire.node, id = wire.id, bytes] {
    if (agent->is_welcomed()) NodeFor(NodeIndex{node}).last_led = queue.now();
    agent->OnBytes(id, bytes);
  });
}

void World::OnClosed(const Wire& wire, End to) {
  if (to == End::kMaster) {
    SimMaster* master = FindMaster(wire.master);
    if (master != nullptr) master->process.Run([master, id = wire.id] { master->OnClosed(id); });
    return;
  }
  SimAgent* agent = FindAgent(wire.agent);
  if (agent != nullptr) agent->process.Run([agent, id = wire.id] { agent->OnClosed(id); });
}

}  // namespace aimaster::sim
