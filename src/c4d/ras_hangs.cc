#include "c4d/ras_hangs.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "c4d/analysis_limits.h"
#include "c4d/hang_ends.h"
#include "c4d/hang_words.h"
#include "c4d/hangs.h"
#include "core/count.h"

namespace aimaster::c4d {
namespace {

constexpr std::string_view kLaunchesOnly =
    "RAS counts what was launched and not what has ended: whose program waits for a stuck device, for a send or "
    "receive, or for a communicator that is being made, looks the same.";

bool HasAll(const std::set<Rank>& ranks, const std::vector<Rank>& members) {
  return std::ranges::all_of(members, [&](Rank member) { return ranks.contains(member); });
}

class RasJudge {
 public:
  RasJudge(const RasScene& scene, const HangTiming& timing)
      : scene_(scene), observation_(scene.observation), timing_(timing) {}

  std::vector<Verdict> Judge() && {
    for (Verdict& verdict : FindHangs(observation_, timing_)) {
      if (verdict.kind == VerdictKind::kRankNonCommHang) {
        outside_.push_back(std::move(verdict));
      } else if (verdict.kind != VerdictKind::kNoProbeData) {
        verdicts_.push_back(std::move(verdict));
      }
    }
    for (uint32_t communicator = 0; communicator < observation_.communicators.size(); ++communicator) {
      AddMismatch(communicator);
    }
    AddGroups();
    for (Verdict& verdict : outside_) {
      verdict.evidence = {std::move(verdict.evidence.front()), std::string(kLaunchesOnly)};
      if (!verdict.waiting.empty()) verdict.evidence.push_back(WaitingSentence(verdict.waiting));
      verdicts_.push_back(std::move(verdict));
    }
    AddUnseen();
    for (Verdict& verdict : verdicts_) AddProcesses(verdict);
    std::ranges::sort(verdicts_, {}, [](const Verdict& verdict) {
      return std::tuple(-static_cast<int>(verdict.level), verdict.kind, verdict.ranks,
                        verdict.communicator.value_or(kNone));
    });
    return std::move(verdicts_);
  }

 private:
  void AddMismatch(uint32_t communicator) {
    const RasMismatch& mismatch = scene_.differs[communicator];
    if (mismatch.ranks.empty()) return;
    Duration since = kNoAge;
    std::vector<const MemberState*> states;
    for (const MemberState& state : observation_.states) {
      if (state.communicator != communicator) continue;
      states.push_back(&state);
      since = Least(since, state.idle);
    }
    const std::optional<Level> level = LevelOfHang(since, true, timing_);
    if (!level) return;
    Verdict& verdict = verdicts_.emplace_back();
    verdict.kind = VerdictKind::kCollectiveMismatch;
    verdict.level = *level;
    verdict.ranks = mismatch.ranks;
    verdict.is_group = mismatch.ranks.size() == states.size();
    verdict.communicator = communicator;
    verdict.since = since;
    verdict.evidence.push_back("What members of " + GroupText(observation_, communicator) +
                               " have launched of each kind can't be the same sequence, of which some are only "
                               "further than others: at one place they launched different operations.");
    verdict.evidence.insert(verdict.evidence.end(), mismatch.counts.begin(), mismatch.counts.end());
  }

  // Ranks that are all outside, and all members of a communicator in which none of them is behind.
  void AddGroups() {
    std::set<Rank> outside;
    for (const Verdict& verdict : outside_) outside.insert(verdict.ranks.begin(), verdict.ranks.end());
    if (outside.size() < 2) return;
    std::vector<bool> is_even(observation_.communicators.size(), true);
    for (const MemberState& state : observation_.states) {
      if (state.issued != state.completed) is_even[state.communicator] = false;
    }
    for (uint32_t communicator = 0; communicator < is_even.size(); ++communicator) {
      const std::vector<Rank>& members = observation_.communicators[communicator].members;
      if (scene_.is_opaque[communicator] || !is_even[communicator] || members.size() < 2) continue;
      if (HasAll(outside, members)) MergeInto(communicator);
    }
  }

  void MergeInto(uint32_t communicator) {
    const std::vector<Rank>& members = observation_.communicators[communicator].members;
    const auto begin = std::ranges::partition(outside_, [&](const Verdict& verdict) {
                         return std::ranges::none_of(
                             verdict.ranks, [&](Rank rank) { return std::ranges::binary_search(members, rank); });
                       }).begin();
    if (begin == outside_.end()) return;
    std::set<Rank> ranks, waiting;
    Verdict merged = *begin;
    merged.evidence.clear();
    for (auto verdict = begin; verdict != outside_.end(); ++verdict) {
      ranks.insert(verdict->ranks.begin(), verdict->ranks.end());
      waiting.insert(verdict->waiting.begin(), verdict->waiting.end());
      merged.since = std::min(merged.since, verdict->since);
      merged.level = std::min(merged.level, verdict->level);
      if (merged.evidence.size() < kRanksWithEvidenceMax) merged.evidence.push_back(verdict->evidence.front());
    }
    for (const Rank rank : ranks) waiting.erase(rank);
    merged.ranks = {ranks.begin(), ranks.end()};
    merged.waiting = {waiting.begin(), waiting.end()};
    merged.is_group = true;
    merged.operation.clear();
    merged.sequence.reset();
    merged.communicator = communicator;
    merged.evidence.push_back("All members of " + GroupText(observation_, communicator) +
                              " are behind elsewhere, and none is behind the others there: one of them may be stuck "
                              "in what all of them have launched, or all outside.");
    outside_.erase(begin, outside_.end());
    if (!merged.waiting.empty()) merged.evidence.push_back(WaitingSentence(merged.waiting));
    verdicts_.push_back(std::move(merged));
  }

  void AddUnseen() {
    if (scene_.not_seen.empty()) return;
    Verdict& verdict = verdicts_.emplace_back();
    verdict.kind = VerdictKind::kNoProbeData;
    verdict.level = verdicts_.size() > 1 || !scene_.is_timed ? Level::kInfo : Level::kWarning;
    for (const auto& [rank, why] : scene_.not_seen) {
      verdict.ranks.push_back(rank);
      if (verdict.ranks.size() <= kRanksWithEvidenceMax) {
        verdict.evidence.push_back(Capital(RankText(Value(rank))) + " is not seen: " + why + ".");
      }
    }
    verdict.evidence.emplace_back("Members of its communicators may wait for it, so none of them is accused.");
  }

  void AddProcesses(Verdict& verdict) const {
    for (size_t i = 0; i < std::min(verdict.ranks.size(), kRanksWithEvidenceMax); ++i) {
      const auto process = scene_.processes.find(verdict.ranks[i]);
      if (process == scene_.processes.end()) continue;
      const auto trouble = scene_.troubles.find(verdict.ranks[i]);
      verdict.evidence.push_back(Capital(RankText(Value(verdict.ranks[i]))) + " is " + process->second +
                                 (trouble == scene_.troubles.end() ? "." : "; " + trouble->second + "."));
    }
  }

  const RasScene& scene_;
  const Observation& observation_;
  const HangTiming& timing_;
  std::vector<Verdict> outside_;
  std::vector<Verdict> verdicts_;
};

}  // namespace

std::vector<Verdict> FindRasHangs(const RasScene& scene, const HangTiming& timing) {
  return RasJudge(scene, timing).Judge();
}

}  // namespace aimaster::c4d
