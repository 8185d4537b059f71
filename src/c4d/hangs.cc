#include "c4d/hangs.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "c4d/analysis_limits.h"
#include "c4d/hang_ends.h"
#include "c4d/hang_words.h"
#include "core/count.h"

namespace aimaster::c4d {
namespace {

// Where the waiting of a rank leads to, a bit for each verdict; and two for ends without one: where nobody looks, and
// what is too young or told by others.
constexpr uint64_t kUnseen = 1, kOther = 2;
constexpr uint32_t kFirstVerdict = 2;
static_assert(kFirstVerdict + kVerdictsMax <= 64);

// Of each component. Whom it waits for comes before it.
std::vector<uint64_t> FindGoals(const HangScene& scene, const std::vector<HangEnd>& ends) {
  const Components& components = scene.components;
  std::vector<uint64_t> goals(components.size());
  for (size_t i = 0; i < std::min(ends.size(), kVerdictsMax); ++i) {
    for (const uint32_t component : ends[i].components) goals[component] |= uint64_t{1} << (kFirstVerdict + i);
  }
  for (uint32_t component = 0; component < components.size(); ++component) {
    if (components.is_end[component]) {
      const bool is_unseen = components.Nodes(component)[0] == Waits::NodeOfUnseen(scene.places);
      if (is_unseen) goals[component] = kUnseen;
      if (goals[component] == 0) goals[component] = kOther;
      continue;
    }
    for (const uint32_t node : components.Nodes(component)) {
      for (const uint32_t target : scene.waits.now.From(node)) goals[component] |= goals[components.of[target]];
    }
  }
  return goals;
}

void AddWaiting(const HangScene& scene, const std::vector<uint64_t>& goals, std::vector<HangEnd>& ends) {
  for (uint32_t rank = 0; rank < scene.places.ranks.size(); ++rank) {
    if (!scene.places.ranks[rank].is_outstanding) continue;
    for (uint64_t left = goals[scene.components.of[rank]] >> kFirstVerdict; left != 0; left &= left - 1) {
      Verdict& verdict = ends[static_cast<size_t>(std::countr_zero(left))].verdict;
      if (!std::ranges::binary_search(verdict.ranks, Rank{rank})) verdict.waiting.push_back(Rank{rank});
    }
  }
  for (HangEnd& end : ends) {
    size_t told = 0;
    for (const Rank rank : end.verdict.ranks) {
      const Hold hold = scene.observation.ranks[Value(rank)].hold;
      if (hold == Hold::kFree || ++told > kRanksWithEvidenceMax) continue;
      end.verdict.evidence.push_back(HeldSentence(Value(rank), hold));
    }
    if (!end.verdict.waiting.empty()) end.verdict.evidence.push_back(WaitingSentence(end.verdict.waiting));
  }
}

// What there are too many of to tell each, in one verdict for each kind.
void Merge(std::vector<HangEnd>& ends) {
  if (ends.size() <= kVerdictsMax) return;
  std::vector<HangEnd> merged;
  for (size_t i = kVerdictsMax; i < ends.size(); ++i) {
    Verdict& one = ends[i].verdict;
    const auto same = std::ranges::find_if(
        merged, [&](const HangEnd& end) { return end.verdict.kind == one.kind && end.verdict.level == one.level; });
    Verdict& verdict = same == merged.end() ? merged.emplace_back().verdict : same->verdict;
    verdict.kind = one.kind;
    verdict.level = one.level;
    verdict.is_group = true;
    verdict.ranks.insert(verdict.ranks.end(), one.ranks.begin(), one.ranks.end());
  }
  const size_t left = ends.size() - kVerdictsMax;
  ends.resize(kVerdictsMax);
  for (HangEnd& end : merged) {
    std::ranges::sort(end.verdict.ranks);
    const auto doubles = std::ranges::unique(end.verdict.ranks);
    end.verdict.ranks.erase(doubles.begin(), doubles.end());
    end.verdict.evidence.push_back("Beside those that are told one by one there are " + std::to_string(left) +
                                   " more, in as many places: this is one failure of many, a switch perhaps.");
    ends.push_back(std::move(end));
  }
}

// Those of whom nothing is known and for whom somebody waits, who waits for nobody else.
std::optional<Verdict> FindUnseen(const HangScene& scene, const std::vector<uint64_t>& goals, bool is_explained) {
  const Observation& observation = scene.observation;
  const Places& places = scene.places;
  std::vector<uint32_t> waiting, unseen = scene.waits.unseen_peers;
  std::vector<bool> is_listed(observation.communicators.size());
  Duration since = kNoAge;
  std::string where;
  for (uint32_t rank = 0; rank < places.ranks.size(); ++rank) {
    const Duration age = places.ranks[rank].age;
    if (goals[scene.components.of[rank]] != kUnseen || !places.ranks[rank].is_outstanding) continue;
    if (!LevelOfHang(age, false, scene.timing)) continue;
    waiting.push_back(rank);
    since = std::max(since, age);
    for (const Head& head : places.HeadsOf(rank)) {
      if (head.state == kNone) continue;
      const Rung& rung = places.rungs[places.rung_of[head.state]];
      const GroupPlaces& group = places.groups[rung.communicator];
      if (group.unseen == 0 || is_listed[rung.communicator]) continue;
      is_listed[rung.communicator] = true;
      if (where.empty()) where = WhichText(observation, rung);
      for (const Rank member : observation.communicators[rung.communicator].members) {
        if (SeatIn(observation, places, rung.communicator, member) == nullptr) unseen.push_back(Value(member));
      }
    }
  }
  std::ranges::sort(unseen);
  const auto doubles = std::ranges::unique(unseen);
  unseen.erase(doubles.begin(), doubles.end());
  if (waiting.empty() || unseen.empty()) return std::nullopt;

  Verdict verdict{.kind = VerdictKind::kNoProbeData, .level = is_explained ? Level::kInfo : Level::kWarning};
  for (const uint32_t rank : unseen) verdict.ranks.push_back(Rank{rank});
  for (const uint32_t rank : waiting) verdict.waiting.push_back(Rank{rank});
  if (since != kNoAge) verdict.since = since;
  verdict.evidence.push_back("Nothing is known of " + RanksText(unseen) + (where.empty() ? "" : ", as in " + where) +
                             ", and " + RanksText(waiting) + (waiting.size() == 1 ? " waits" : " wait") +
                             " for nobody else: who hangs can't be told from here.");
  return verdict;
}

}  // namespace

std::vector<Verdict> FindHangs(const Observation& observation, const HangTiming& timing) {
  const Places places = FindPlaces(observation);
  const Waits waits = FindWaits(observation, places);
  const Components components = FindComponents(waits.now);
  const HangScene scene{observation, places, waits, components, timing};

  std::vector<HangEnd> ends = JudgeEnds(scene);
  std::ranges::sort(ends, {}, [](const HangEnd& end) {
    const Verdict& verdict = end.verdict;
    return std::tuple(-static_cast<int>(verdict.level), verdict.ranks.front(), verdict.kind,
                      verdict.communicator.value_or(kNone), end.components.front());
  });
  const std::vector<uint64_t> goals = FindGoals(scene, ends);
  std::optional<Verdict> unseen = FindUnseen(scene, goals, !ends.empty());
  Merge(ends);
  AddWaiting(scene, goals, ends);

  std::vector<Verdict> verdicts;
  for (HangEnd& end : ends) verdicts.push_back(std::move(end.verdict));
  if (unseen) {
    const auto worse = std::ranges::upper_bound(verdicts, unseen->level, std::greater(), &Verdict::level);
    verdicts.insert(worse, std::move(*unseen));
  }
  return verdicts;
}

}  // namespace aimaster::c4d
