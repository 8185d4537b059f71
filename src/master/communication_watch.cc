#include "master/communication_watch.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "c4d/hangs.h"
#include "c4d/verdict_words.h"
#include "core/c4d_environment.h"
#include "master/job_life.h"
#include "wire/record_message.h"

namespace aimaster {
namespace {

constexpr Duration kHeartbeat = std::chrono::seconds{1};  // of agents
constexpr size_t kVerdictsToldMax = 32;
constexpr size_t kRanksToldMax = 4096;
constexpr size_t kEvidenceToldMax = 12;
constexpr auto kHoldMax = static_cast<uint32_t>(c4d::Hold::kKernel);
constexpr int64_t kWaitMaxNs = int64_t{1} << 61;

bool IsLookedAt(const JobState& job) {
  const FaultToleranceParameters& parameters = job.spec.fault_tolerance;
  return !IsAsync(job) && parameters.enable_job_hang_detection && parameters.enable_c4d_hang_detection;
}

// They were checked when the job was submitted.
c4d::HangTiming TimingOf(const JobState& job) {
  const std::map<std::string, std::string>& settings = job.spec.fault_tolerance.c4d_common_envs;
  c4d::HangTiming timing;
  timing.timeout = ParseC4dTime(C4dSettingIn(settings, "C4D_HANG_TIMEOUT")).value_or(timing.timeout);
  timing.times = ParseC4dTimes(C4dSettingIn(settings, "C4D_HANG_TIMES")).value_or(timing.times);
  return timing;
}

C4dLogLevel LevelOf(c4d::Level level) {
  switch (level) {
    case c4d::Level::kInfo:
      return C4dLogLevel::kInfo;
    case c4d::Level::kWarning:
      return C4dLogLevel::kWarning;
    case c4d::Level::kError:
      break;
  }
  return C4dLogLevel::kError;
}

bool IsHangOfRanks(c4d::VerdictKind kind) {
  return kind == c4d::VerdictKind::kRankCommHang || kind == c4d::VerdictKind::kRankNonCommHang ||
         kind == c4d::VerdictKind::kCollectiveMismatch;
}

// Of two conclusions, whether they say the same of somebody: for how long it has been so, and by what, may differ.
bool SaysTheSame(const CommunicationVerdict& a, const CommunicationVerdict& b) {
  return a.kind == b.kind && a.ranks == b.ranks && a.level == b.level;
}

bool IsSlowness(const CommunicationVerdict& verdict) {
  return verdict.kind == c4d::Name(c4d::VerdictKind::kRankCommSlow) ||
         verdict.kind == c4d::Name(c4d::VerdictKind::kRankNonCommSlow);
}

bool IsWorse(const std::vector<CommunicationVerdict>& now, const std::vector<CommunicationVerdict>& before) {
  const auto worst = [](const std::vector<CommunicationVerdict>& verdicts) {
    std::optional<C4dLogLevel> level;
    for (const CommunicationVerdict& verdict : verdicts) level = std::max(level, std::optional(verdict.level));
    return level;
  };
  return worst(now) > worst(before);
}

bool SaysAllTheSame(const std::vector<CommunicationVerdict>& a, const std::vector<CommunicationVerdict>& b) {
  return std::ranges::equal(a, b, SaysTheSame);
}

}  // namespace

// ---- the job's life ----

void CommunicationWatch::Follow(const JobState& job) {
  if (job.round == round_ && job.ranks_started == ranks_started_) return;
  round_ = job.round;
  ranks_started_ = job.ranks_started;
  nodes_.clear();
  is_waiting_ = false;
  records_.clear();
  last_.reset();
  is_settled_ = true;
  unchanged_ = 0;
  looked_.reset();
  told_.reset();
  slowness_ = {};
  slow_.clear();
  std::ranges::copy_if(job.communication, std::back_inserter(slow_), IsSlowness);
}

// ---- what nodes say ----

void CommunicationWatch::Heard(Monotonic now, NodeIndex node, const v1::Heartbeat& heartbeat, const JobState& job) {
  if (!IsLookedAt(job)) return;
  Follow(job);
  const v1::Communication& communication = heartbeat.communication();
  Hearing& hearing = nodes_[node];
  slowness_.Take(now, node, communication, job);
  hearing = {.heard = now, .processes = communication.processes(), .longest_wait = {}};
  if (communication.has_longest_wait_ns()) {
    hearing.longest_wait = Duration(std::clamp<int64_t>(communication.longest_wait_ns(), 0, kWaitMaxNs));
  }
}

void CommunicationWatch::Take(NodeIndex node, const v1::Records& records, const JobState& job) {
  if (!is_waiting_ || records.number() != number_ || !unanswered_.contains(node)) return;
  if (!records.more_follow()) unanswered_.erase(node);
  for (const v1::ProcessRecord& process : records.processes()) {
    const std::optional<InstanceIndex> instance = FindLive(job, node, process.id().instance(), process.id().attempt());
    if (!instance) continue;
    std::optional<c4d::Record> record = FromMessage(process);
    if (!record || !record->world_rank) continue;
    const auto hold = static_cast<c4d::Hold>(std::min<uint32_t>(process.hold(), kHoldMax));
    records_.push_back({.instance = *instance, .hold = hold, .record = std::move(*record)});
  }
}

// ---- what follows ----

std::optional<Monotonic> CommunicationWatch::StuckAt(const JobState& job) const {
  const Duration timeout = TimingOf(job).timeout;
  std::optional<Monotonic> at;
  for (const auto& [node, hearing] : nodes_) {
    if (!hearing.longest_wait) continue;
    const Monotonic then = hearing.heard + std::max(timeout - *hearing.longest_wait, Duration::zero());
    if (then - hearing.heard <= kHeartbeat && (!at || then < *at)) at = then;
  }
  return at;
}

bool CommunicationWatch::AllAreHeard(const JobState& job) const {
  return std::ranges::all_of(NodesWithRanks(job), [&](NodeIndex node) { return nodes_.contains(node); });
}

bool CommunicationWatch::IsNothingRecorded(Monotonic now, const JobState& job) const {
  const std::optional<Monotonic> up = RanksUp(job);
  if (!up || now - *up < kNoDataAfter) return false;
  const std::set<NodeIndex> wanted = NodesWithRanks(job);
  return std::ranges::all_of(wanted, [&](NodeIndex node) {
    const auto found = nodes_.find(node);
    return found != nodes_.end() && found->second.processes == 0;
  });
}

CommunicationWatch::Answer CommunicationWatch::Look(Monotonic now, const JobState& job) {
  Answer answer;
  if (!IsLookedAt(job)) return answer;
  Follow(job);
  if (job.phase != Phase::kRunning) {
    is_waiting_ = false;
    return answer;
  }
  LookForSlowness(now, job);
  if (is_waiting_) {
    if (!unanswered_.empty() && now - *looked_ < kAnswerMax) return answer;
    is_waiting_ = false;
    // Of who has not answered nothing is known, and what was known of it may well hold.
    if (unanswered_.empty() || job.communication.empty()) Settle(now, Conclude(job), job, answer);
    return answer;
  }
  if (looked_ && now - *looked_ < Pause()) return answer;
  const std::optional<Monotonic> stuck = StuckAt(job);
  looked_ = now;
  if (stuck && *stuck <= now) {
    Ask(job, answer);
  } else if (IsNothingRecorded(now, job)) {
    const c4d::Verdict nothing{.kind = c4d::VerdictKind::kNoProbeData, .level = c4d::Level::kWarning};
    last_ = Verdicts{Translate(nothing, {}, job)};
    Settle(now, *last_, job, answer);
  } else if (!job.communication.empty() || !slow_.empty()) {
    if (AllAreHeard(job)) Settle(now, {}, job, answer);
  } else {
    last_.reset();
    is_settled_ = true;
    unchanged_ = 0;
    looked_.reset();
  }
  return answer;
}

std::optional<Monotonic> CommunicationWatch::NextLook(const JobState& job) const {
  if (!IsLookedAt(job) || job.phase != Phase::kRunning) return std::nullopt;
  if (is_waiting_) return *looked_ + kAnswerMax;
  std::optional<Monotonic> next = StuckAt(job);
  if (!is_settled_ && looked_) next = *looked_;
  if (next && looked_) next = std::max(*next, *looked_ + Pause());
  return next;
}

void CommunicationWatch::Ask(const JobState& job, Answer& answer) {
  ++number_;
  is_waiting_ = true;
  records_.clear();
  unanswered_ = NodesWithRanks(job);
  answer.ask.assign(unanswered_.begin(), unanswered_.end());
  answer.number = number_;
}

// Ranks are those of the program: of MPI its own, which are more than the job knows of.
CommunicationWatch::Verdicts CommunicationWatch::Conclude(const JobState& job) {
  std::map<Rank, InstanceIndex> places;
  std::set<Rank> ambiguous;
  std::vector<c4d::RankRecord> records;
  const bool is_mpi = job.spec.framework == Framework::kMpi;
  auto ranks = is_mpi ? 0u : static_cast<uint32_t>(job.rank_ended.size());
  for (Taken& taken : std::exchange(records_, {})) {
    const Rank rank = *taken.record.world_rank;
    if (is_mpi) ranks = std::min(std::max(ranks, taken.record.world_size), c4d::kRecordRanksMax);
    // Of two worlds, of which each has such a rank: where the one is that is meant can't be told.
    const auto [place, is_first] = places.try_emplace(rank, taken.instance);
    if (!is_first && place->second != taken.instance) ambiguous.insert(rank);
    records.push_back({.rank = rank, .hold = taken.hold, .record = std::move(taken.record)});
  }
  for (const Rank rank : ambiguous) places.erase(rank);
  const c4d::ObservedRecords observed = c4d::ObserveRecords(records, ranks);
  Verdicts verdicts;
  for (const c4d::Verdict& verdict : c4d::FindHangs(observed.observation, TimingOf(job))) {
    if (verdicts.size() == kVerdictsToldMax) break;
    verdicts.push_back(Translate(verdict, places, job));
  }
  return verdicts;
}

CommunicationVerdict CommunicationWatch::Translate(const c4d::Verdict& verdict,
                                                   const std::map<Rank, InstanceIndex>& places,
                                                   const JobState& job) const {
  CommunicationVerdict told{.kind = std::string(c4d::Name(verdict.kind)),
                            .level = LevelOf(verdict.level),
                            .ranks = verdict.ranks,
                            .is_culprit = IsHangOfRanks(verdict.kind) && !verdict.is_group,
                            .suspects_node = verdict.kind == c4d::VerdictKind::kRankCommHang && !verdict.is_group,
                            .text = c4d::Sentence(verdict),
                            .lasts = std::max(verdict.since.value_or(Duration::zero()), Duration::zero())};
  if (told.ranks.size() > kRanksToldMax) told.ranks.resize(kRanksToldMax);
  for (const Rank rank : told.ranks) {
    const auto place = places.find(rank);
    if (place != places.end()) told.instances.push_back(place->second);
  }
  if (told.instances.size() != told.ranks.size()) told.instances.clear();
  std::set<NodeIndex> nodes;
  for (const InstanceIndex instance : told.instances) nodes.insert(job.instances[Value(instance)].node);
  told.nodes.assign(nodes.begin(), nodes.end());
  if (verdict.kind == c4d::VerdictKind::kNoProbeData && verdict.ranks.empty()) {
    told.text = "no rank has told what it communicates: C4D sees nothing of this job";
  }
  for (const std::string& sentence : verdict.evidence) {
    if (told.evidence.size() < kEvidenceToldMax) told.evidence.push_back(sentence);
  }
  return told;
}

void CommunicationWatch::LookForSlowness(Monotonic now, const JobState& job) {
  const std::optional<std::vector<c4d::Verdict>> found = slowness_.CloseWindow(now, job);
  if (!found || (found->empty() && !slowness_.is_warm())) return;
  slow_.clear();
  for (const c4d::Verdict& verdict : *found) slow_.push_back(Translate(verdict, slowness_.places(), job));
}

void CommunicationWatch::Settle(Monotonic now, Verdicts hangs, const JobState& job, Answer& answer) {
  is_settled_ = last_ && SaysAllTheSame(hangs, *last_);
  unchanged_ = is_settled_ ? unchanged_ + 1 : 0;
  last_ = std::move(hangs);
  if (!is_settled_) return;
  Verdicts verdicts = *last_;
  verdicts.insert(verdicts.end(), slow_.begin(), slow_.end());
  if (SaysAllTheSame(verdicts, job.communication)) return;
  // Thousands of ranks that come out of something one after the other are not told of one by one.
  const bool is_urgent = verdicts.empty() || IsWorse(verdicts, job.communication);
  if (!is_urgent && told_ && now - *told_ < TimingOf(job).timeout) return;
  told_ = now;
  answer.judged = CommunicationJudged{.round = job.round, .verdicts = std::move(verdicts)};
}

}  // namespace aimaster
