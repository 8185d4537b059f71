#include "c4d/ras_observation.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "c4d/hang_words.h"
#include "c4d/job_ranks.h"
#include "core/count.h"

namespace aimaster::c4d {
namespace {

constexpr int64_t kBetweenLooksMaxSeconds = int64_t{366} * 86'400;

using RasKey = std::tuple<std::string_view, std::string_view, uint32_t>;  // of a communicator

RasKey KeyOf(const RasCommunicator& one) { return {one.hash, one.secondary_hash, one.size}; }

uint64_t Total(const RasCounts& counts) { return std::accumulate(counts.begin(), counts.end(), uint64_t{0}); }

bool IsAtMost(const RasCounts& a, const RasCounts& b) {
  return std::ranges::equal(a, b, [](uint64_t less, uint64_t more) { return less <= more; });
}

// Of one sequence both are a beginning.
bool MayBeOneSequence(const RasCounts& a, const RasCounts& b) { return IsAtMost(a, b) || IsAtMost(b, a); }

uint64_t RankToRank(const RasCounts& counts) {
  return counts[static_cast<size_t>(Function::kSend)] + counts[static_cast<size_t>(Function::kReceive)];
}

// What the longer one has more, where that is of one kind.
std::optional<Function> OnlyDifference(const RasCounts& less, const RasCounts& more) {
  std::optional<Function> found;
  for (size_t i = 0; i < less.size(); ++i) {
    if (less[i] == more[i]) continue;
    if (found) return std::nullopt;
    found = static_cast<Function>(i);
  }
  return found;
}

class RasBuilder {
 public:
  RasBuilder(std::span<const RasReport> looks, std::optional<Duration> stood_for)
      : looks_(looks), newest_(looks.back()), stood_for_(stood_for) {
    for (const RasReport& look : looks.first(looks.size() - 1)) {
      auto& communicators = before_.emplace_back();
      for (const RasCommunicator& one : look.communicators) communicators.emplace(KeyOf(one), &one);
    }
  }

  RasScene Build() && {
    NumberAll();
    scene_.observation.ranks.resize(ranks_.count);
    std::vector<const RasCommunicator*> order;
    for (const RasCommunicator& one : newest_.communicators) {
      if (one.size > 1) order.push_back(&one);
    }
    for (const RasCommunicator* one : order) SeeMembers(*one);
    scene_.still = StillFor(nullptr, nullptr);
    for (const RasCommunicator* one : order) AddCommunicator(*one);
    for (uint32_t rank = 0; rank < ranks_.count; ++rank) {
      RankState& state = scene_.observation.ranks[rank];
      const auto quiet = quiet_.find(Rank{rank});
      if (quiet != quiet_.end()) state.outside = quiet->second;
      if (!state.is_observed) scene_.not_seen.emplace(Rank{rank}, "no communicator lists it");
    }
    scene_.is_timed = looks_.size() > 1 || stood_for_;
    return std::move(scene_);
  }

 private:
  void NumberAll() {
    std::vector<SeatedGroup> groups;
    for (const RasCommunicator& one : newest_.communicators) {
      SeatedGroup& group = groups.emplace_back();
      group.size = one.size;
      for (const RasMember& member : one.members) group.seats.emplace_back(member.position, member.process);
    }
    ranks_ = NumberRanks(groups);
    scene_.is_numbered = ranks_.is_numbered;
    for (const auto& [process, rank] : ranks_.of) scene_.processes.emplace(rank, process);
  }

  std::optional<Rank> RankOf(const RasMember& member) const {
    const auto found = ranks_.of.find(member.process);
    return found == ranks_.of.end() ? std::nullopt : std::optional(found->second);
  }

  void SeeMembers(const RasCommunicator& one) {
    for (const RasMember& member : one.members) {
      const std::optional<Rank> rank = RankOf(member);
      if (!rank) continue;
      if (member.is_missing) {
        scene_.not_seen.emplace(*rank, member.trouble);
        continue;
      }
      scene_.observation.ranks[Value(*rank)].is_observed = true;
      if (!member.trouble.empty()) scene_.troubles.emplace(*rank, member.trouble);
    }
    // Who answers is seen, also where it does not know one of the communicators.
    std::erase_if(scene_.not_seen,
                  [&](const auto& entry) { return scene_.observation.ranks[Value(entry.first)].is_observed; });
  }

  // For how long the member has launched nothing there; without one, for how long nobody has launched anything.
  Duration StillFor(const RasCommunicator* communicator, const RasMember* member) const {
    Duration still = stood_for_ ? *stood_for_ + Duration(1) : Duration::zero();
    const RasReport* oldest = &newest_;
    for (size_t i = before_.size(); i-- > 0;) {
      const bool is_same = member != nullptr ? IsSame(i, *communicator, *member) : IsAllTheSame(i);
      if (!is_same) {
        still = Duration::zero();
        break;
      }
      oldest = &looks_[i];
    }
    if (oldest == &newest_ || !newest_.taken_seconds || !oldest->taken_seconds) return still;
    // Written in whole seconds: the time between two is up to one less.
    const int64_t seconds =
        std::clamp<int64_t>(*newest_.taken_seconds - *oldest->taken_seconds - 1, 0, kBetweenLooksMaxSeconds);
    return still + std::chrono::seconds(seconds);
  }

  bool IsSame(size_t look, const RasCommunicator& communicator, const RasMember& member) const {
    const auto found = before_[look].find(KeyOf(communicator));
    if (found == before_[look].end()) return false;
    const auto& members = found->second->members;
    const auto same = std::ranges::lower_bound(members, member.position, {}, &RasMember::position);
    return same != members.end() && same->position == member.position && !same->is_missing &&
           same->process == member.process && same->counts == member.counts;
  }

  bool IsAllTheSame(size_t look) const {
    return std::ranges::all_of(newest_.communicators, [&](const RasCommunicator& one) {
      return std::ranges::all_of(
          one.members, [&](const RasMember& member) { return member.is_missing || IsSame(look, one, member); });
    });
  }

  void AddCommunicator(const RasCommunicator& one) {
    std::vector<std::pair<Rank, const RasMember*>> members;
    std::set<Rank> all;
    for (const RasMember& member : one.members) {
      const std::optional<Rank> rank = RankOf(member);
      if (!rank || !all.insert(*rank).second) continue;
      if (!member.is_missing) members.emplace_back(*rank, &member);
    }
    std::ranges::sort(members);
    Observation& observation = scene_.observation;
    observation.communicators.push_back({.name = NameOf(one), .description = {}, .members = {all.begin(), all.end()}});
    scene_.differs.push_back(FindDifferent(members));
    scene_.is_opaque.push_back(IsOpaque(one, members) || !scene_.differs.back().ranks.empty());
    for (const auto& [rank, member] : members) {
      const Duration still = StillFor(&one, member);
      const auto [quiet, is_first] = quiet_.emplace(rank, still);
      if (!is_first) quiet->second = std::min(quiet->second, still);
    }
    if (members.empty()) return;
    const auto least =
        std::ranges::min_element(members, {}, [](const auto& entry) { return Total(entry.second->counts); });
    const RasMember& last = *least->second;
    for (const auto& [rank, member] : members) AddState(one, rank, *member, last);
    NoteWhoIsBehind(members, last);
  }

  // A hash of 64 bits is not shared by chance; where it is, the second one tells.
  std::string NameOf(const RasCommunicator& one) {
    return names_.insert(one.hash).second ? one.hash : one.hash + " (" + one.secondary_hash + ")";
  }

  static bool IsOpaque(const RasCommunicator& one, std::span<const std::pair<Rank, const RasMember*>> members) {
    if (!one.is_whole || members.size() != one.size) return true;
    const bool is_used =
        std::ranges::any_of(members, [](const auto& entry) { return Total(entry.second->counts) != 0; });
    return !is_used || std::ranges::any_of(members, [](const auto& entry) {
      return entry.second->is_starting || RankToRank(entry.second->counts) != 0;
    });
  }

  // Those whose counts can't belong to the sequence of most members; where there are no most, all.
  static RasMismatch FindDifferent(std::span<const std::pair<Rank, const RasMember*>> members) {
    std::map<RasCounts, std::vector<uint32_t>> parties;
    for (const auto& [rank, member] : members) parties[member->counts].push_back(Value(rank));
    if (parties.empty()) return {};
    const auto most = std::ranges::max_element(parties, {}, [](const auto& party) { return party.second.size(); });
    std::vector<Rank> different, rest;
    for (const auto& [rank, member] : members) {
      (MayBeOneSequence(member->counts, most->first) ? rest : different).push_back(rank);
    }
    if (different.empty()) return {};
    RasMismatch mismatch{.ranks = different, .counts = {CountsSentence(*most)}};
    for (const auto& party : parties) {
      if (mismatch.counts.size() == kRanksWithEvidenceMax) break;
      if (!MayBeOneSequence(party.first, most->first)) mismatch.counts.push_back(CountsSentence(party));
    }
    if (different.size() < rest.size()) return mismatch;
    mismatch.ranks.insert(mismatch.ranks.end(), rest.begin(), rest.end());
    std::ranges::sort(mismatch.ranks);
    return mismatch;
  }

  // "Rank 3 has launched 2 AllReduce and 1 AllGather."
  static std::string CountsSentence(const std::pair<const RasCounts, std::vector<uint32_t>>& party) {
    const auto& [counts, ranks] = party;
    std::string text;
    for (size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] == 0) continue;
      text +=
          (text.empty() ? "" : ", ") + std::to_string(counts[i]) + " " + std::string(Name(static_cast<Function>(i)));
    }
    return Capital(RanksText(ranks)) + (ranks.size() == 1 ? " has" : " have") + " launched " +
           (text.empty() ? "nothing" : text) + ".";
  }

  void AddState(const RasCommunicator& one, Rank rank, const RasMember& member, const RasMember& last) {
    Observation& observation = scene_.observation;
    MemberState& state = observation.states.emplace_back();
    state.communicator = static_cast<uint32_t>(observation.communicators.size() - 1);
    state.rank = rank;
    state.first_operation = static_cast<uint32_t>(observation.operations.size());
    state.issued = Total(member.counts);
    state.completed = Total(last.counts);
    state.idle = StillFor(&one, &member);
    if (scene_.is_opaque.back()) {
      // Something is outstanding of which its source does not tell what it waits for.
      state.completed = state.issued++;
      state.carries_point_to_point = true;
      observation.ranks[Value(rank)].has_lost_operations = true;
      return;
    }
    const std::optional<Function> function = OnlyDifference(last.counts, member.counts);
    if (!function) return;
    observation.operations.push_back({.sequence = state.completed + 1, .age = state.idle, .function = *function});
    state.operation_count = 1;
  }

  void NoteWhoIsBehind(std::span<const std::pair<Rank, const RasMember*>> members, const RasMember& last) {
    const uint64_t least = Total(last.counts);
    uint64_t most = 0;
    for (const auto& [_, member] : members) most = std::max(most, Total(member->counts));
    if (!scene_.differs.back().ranks.empty()) scene_.is_even = false;
    if (most == least) return;
    scene_.is_even = false;
    for (const auto& [rank, member] : members) {
      if (Total(member->counts) != least) continue;
      scene_.behind.emplace(rank, RankText(Value(rank)) + " has launched " + Count(least, "collective") + " in " +
                                      scene_.observation.communicators.back().name + ", others up to " +
                                      std::to_string(most));
    }
  }

  std::span<const RasReport> looks_;
  const RasReport& newest_;
  std::optional<Duration> stood_for_;
  std::vector<std::map<RasKey, const RasCommunicator*>> before_;  // of each look before the newest
  JobRanks ranks_;
  std::map<Rank, Duration> quiet_;
  std::set<std::string> names_;
  RasScene scene_;
};

}  // namespace

RasScene MakeRasScene(std::span<const RasReport> looks, std::optional<Duration> stood_for) {
  return RasBuilder(looks, stood_for).Build();
}

bool IsSameJob(const RasReport& one, const RasReport& other) {
  std::set<RasKey> keys;
  for (const RasCommunicator& communicator : one.communicators) keys.insert(KeyOf(communicator));
  return std::ranges::any_of(other.communicators,
                             [&](const RasCommunicator& communicator) { return keys.contains(KeyOf(communicator)); });
}

}  // namespace aimaster::c4d
