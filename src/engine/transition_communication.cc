// What the analysis of communication says: told to people when it is new, kept for the judgement of a hang, and, where
// it is an Error, taken for one. It names who hangs, where silence only says that all are silent.
#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "engine/failures.h"
#include "engine/transition.h"

namespace aimaster {
namespace {

constexpr size_t kEvidenceMax = 8;  // sentences of one verdict among the reasons

bool IsAboutTheSame(const CommunicationVerdict& a, const CommunicationVerdict& b) {
  return a.kind == b.kind && a.ranks == b.ranks;
}

bool Contains(const std::vector<CommunicationVerdict>& verdicts, const CommunicationVerdict& wanted) {
  return std::ranges::any_of(verdicts, [&](const auto& verdict) { return IsAboutTheSame(verdict, wanted); });
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kEventTypes = {{
    {"RankCommHang", "aimaster.c4d.rank-comm-hang"},
    {"RankNonCommHang", "aimaster.c4d.rank-non-comm-hang"},
    {"RankCommSlow", "aimaster.c4d.rank-comm-slow"},
    {"RankNonCommSlow", "aimaster.c4d.rank-non-comm-slow"},
    {"CollectiveMismatch", "aimaster.c4d.collective-mismatch"},
    {"CyclicWait", "aimaster.c4d.cyclic-wait"},
    {"NoProbeData", "aimaster.c4d.no-probe-data"},
}};

std::string EventTypeOf(const std::string& kind) {
  const auto found = std::ranges::find(kEventTypes, kind, &decltype(kEventTypes)::value_type::first);
  return std::string(found == kEventTypes.end() ? "aimaster.job.note" : found->second);
}

std::string LevelText(C4dLogLevel level) {
  return level == C4dLogLevel::kError ? "Error" : level == C4dLogLevel::kWarning ? "Warning" : "Info";
}

// The worst that names somebody whose place is known; of those, one that speaks of the place.
const CommunicationVerdict* FindCulprit(const std::vector<CommunicationVerdict>& verdicts) {
  const CommunicationVerdict* found = nullptr;
  for (const CommunicationVerdict& verdict : verdicts) {
    if (!verdict.is_culprit || verdict.instances.empty()) continue;
    const auto weight = [](const CommunicationVerdict& one) { return std::pair(one.level, one.suspects_node); };
    if (found == nullptr || weight(verdict) > weight(*found)) found = &verdict;
  }
  return found;
}

}  // namespace

void Transition::On(const CommunicationJudged& input) {
  const FaultToleranceParameters& parameters = job_.spec.fault_tolerance;
  const bool is_asked_for = parameters.enable_c4d_hang_detection && parameters.enable_job_hang_detection;
  if (job_.phase != Phase::kRunning || input.round != job_.round || !is_asked_for || IsAsync(job_)) return;
  std::vector<CommunicationVerdict> verdicts = input.verdicts;
  for (CommunicationVerdict& verdict : verdicts) {
    if (!HasPlaces(verdict)) verdict.instances.clear();
  }
  TellCommunication(verdicts);
  job_.communication = std::move(verdicts);
  const auto error = std::ranges::find(job_.communication, C4dLogLevel::kError, &CommunicationVerdict::level);
  if (error == job_.communication.end() || IsWorkDone()) return;
  BeginHang({.kind = HangKind::kCommunication, .round = job_.round, .lasts = error->lasts, .interval = error->lasts});
}

// Whether it says of each of its ranks, which this job has, where that is.
bool Transition::HasPlaces(const CommunicationVerdict& verdict) const {
  const bool is_mpi = job_.spec.framework == Framework::kMpi;  // its ranks are not the job's
  return verdict.instances.size() == verdict.ranks.size() &&
         std::ranges::all_of(verdict.instances, [&](auto i) { return Value(i) < job_.instances.size(); }) &&
         std::ranges::all_of(verdict.ranks, [&](Rank r) { return is_mpi || Value(r) < job_.rank_ended.size(); });
}

void Transition::TellCommunication(const std::vector<CommunicationVerdict>& verdicts) {
  const C4dLogLevel wanted = job_.spec.fault_tolerance.c4d_log_level;
  for (const CommunicationVerdict& verdict : verdicts) {
    const bool was_told = std::ranges::any_of(job_.communication, [&](const auto& before) {
      return IsAboutTheSame(before, verdict) && before.level >= verdict.level;
    });
    if (verdict.level < wanted || was_told) continue;
    const bool is_known = !verdict.instances.empty();
    const NodeIndex node = is_known ? job_.instances[Value(verdict.instances.front())].node : NodeIndex{};
    Tell(EventTypeOf(verdict.kind), is_known ? job_.nodes.at(node).name : "",
         LevelText(verdict.level) + ": " + CommunicationText(verdict));
  }
  for (const CommunicationVerdict& before : job_.communication) {
    if (before.level < wanted || Contains(verdicts, before)) continue;
    Tell("aimaster.c4d.over", "", "no longer: " + before.text + " (" + before.kind + ")");
  }
}

std::string Transition::CommunicationText(const CommunicationVerdict& verdict) const {
  std::set<std::string> nodes;
  for (const InstanceIndex instance : verdict.instances) {
    nodes.insert(NodeText(job_.instances[Value(instance)].node));
  }
  std::string text = verdict.text + " (" + verdict.kind + ")";
  if (nodes.size() > kNamesInTextMax) {
    text += ", on " + std::to_string(nodes.size()) + " nodes";
  } else {
    const char* join = ", on ";
    for (const std::string& node : nodes) text += std::exchange(join, " and ") + node;
  }
  if (verdict.lasts > Duration::zero()) text += ", for " + FormatDuration(verdict.lasts);
  return text;
}

// A hang, however it was found: who is known to be waited for is the root. Only an Error says that of the node, and
// only where all that it names are on one.
void Transition::BlameCommunication(Judgement& judgement) const {
  const CommunicationVerdict* culprit = FindCulprit(job_.communication);
  for (const CommunicationVerdict& verdict : job_.communication) {
    judgement.reasons.push_back("C4D, " + LevelText(verdict.level) + ": " + CommunicationText(verdict));
    for (size_t i = 0; i < std::min(verdict.evidence.size(), kEvidenceMax); ++i) {
      judgement.reasons.push_back("C4D: " + verdict.evidence[i]);
    }
  }
  if (culprit == nullptr) return;
  const bool is_mpi = job_.spec.framework == Framework::kMpi;
  std::set<NodeIndex> nodes;
  for (size_t i = 0; i < culprit->instances.size(); ++i) {
    const InstanceIndex instance = culprit->instances[i];
    const InstanceState& place = job_.instances[Value(instance)];
    nodes.insert(place.node);
    if (judgement.details.size() == kDetailsMax) continue;
    judgement.details.push_back({.rank = is_mpi ? place.first_rank : culprit->ranks[i],
                                 .instance = instance,
                                 .node = place.node,
                                 .is_root = true,
                                 .error_code = 0,
                                 .fault = culprit->kind,
                                 .message = CommunicationText(*culprit),
                                 .source = ErrorSource::kC4d,
                                 .mpi_rank = is_mpi ? std::optional(Value(culprit->ranks[i])) : std::nullopt});
  }
  judgement.root_rank = judgement.details.front().rank;
  judgement.root_instance = judgement.details.front().instance;
  judgement.root_node = judgement.details.front().node;
  if (culprit->level != C4dLogLevel::kError || !culprit->suspects_node) return;
  if (nodes.size() > 1) {
    judgement.reasons.push_back("the ranks named are on " + std::to_string(nodes.size()) + " nodes: none is isolated");
    return;
  }
  judgement.node_suspect = true;
  judgement.severity = Severity::kIsolateNode;
}

}  // namespace aimaster
