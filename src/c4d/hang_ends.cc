#include "c4d/hang_ends.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "c4d/hang_words.h"
#include "core/count.h"

namespace aimaster::c4d {
namespace {

std::vector<Rank> AsRanks(std::span<const uint32_t> indices) {
  std::vector<Rank> ranks;
  ranks.reserve(indices.size());
  for (const uint32_t index : indices) ranks.push_back(Rank{index});
  return ranks;
}

std::string Ago(Duration age) { return age == kNoAge ? "" : " " + FormatDuration(age) + " ago"; }

std::string HaveOrHas(size_t ranks) { return ranks == 1 ? " has" : " have"; }

class EndJudge {
 public:
  explicit EndJudge(const HangScene& scene)
      : scene_(scene), observation_(scene.observation), places_(scene.places), waits_(scene.waits) {}

  std::vector<HangEnd> Judge() && {
    const std::vector<Missed> missed = FindMissed(observation_, places_, waits_);
    FindCertain(missed);
    JudgeMissed(missed);
    for (uint32_t rank = 0; rank < places_.ranks.size(); ++rank) {
      if (places_.IsStalled(rank) && IsAlive(rank)) JudgeStalled(rank);
    }
    for (uint32_t component = 0; component < scene_.components.size(); ++component) {
      if (!scene_.components.is_end[component]) continue;
      const std::span<const uint32_t> nodes = scene_.components.Nodes(component);
      if (nodes.size() > 1) {
        JudgeCircle(component);
      } else if (nodes[0] >= Waits::NodeOfTransfer(places_, 0)) {
        JudgeTransfer(waits_.transfers[nodes[0] - Waits::NodeOfTransfer(places_, 0)], component);
      } else if (nodes[0] > Waits::NodeOfUnseen(places_)) {
        // Of a rung no end is possible: from it arrows lead to its ranks.
        JudgeOperation((nodes[0] - Waits::NodeOfUnseen(places_) - 1) / 2, component);
      }
    }
    return std::move(ends_);
  }

 private:
  bool IsAlive(uint32_t rank) const { return observation_.ranks[rank].is_alive; }

  // Nothing where it is too young. The verdict stays where it is until the next one is added.
  Verdict* Add(VerdictKind kind, Duration since, std::vector<uint32_t> components) {
    const std::optional<Level> level = LevelOfHang(since, kind != VerdictKind::kRankNonCommHang, scene_.timing);
    if (!level) return nullptr;
    HangEnd& end = ends_.emplace_back();
    end.verdict.kind = kind;
    end.verdict.level = *level;
    if (since != kNoAge) end.verdict.since = since;
    end.components = std::move(components);
    return &end.verdict;
  }

  void FindCertain(const std::vector<Missed>& missed) {
    std::vector<uint32_t> certain;
    for (const Missed& one : missed) certain.push_back(one.rank);
    for (uint32_t rank = 0; rank < places_.ranks.size(); ++rank) {
      const bool has_ended = observation_.ranks[rank].is_observed && !IsAlive(rank);
      if (has_ended || places_.ranks[rank].trails >= kTrailsForProof) certain.push_back(rank);
    }
    if (!certain.empty()) leads_to_certain_ = waits_.ever.Reaching(certain);
    const uint32_t unseen = Waits::NodeOfUnseen(places_);
    leads_to_unseen_ = waits_.ever.Reaching(std::span(&unseen, 1));
  }

  bool LeadsToCertain(uint32_t rank) const { return !leads_to_certain_.empty() && leads_to_certain_[rank]; }
  bool LeadsOn(uint32_t rank) const { return leads_to_unseen_[rank] || LeadsToCertain(rank); }

  // Those who are missed in the same operation are told together.
  void JudgeMissed(std::vector<Missed> missed) {
    std::erase_if(missed, [&](const Missed& one) {
      return !LevelOfHang(Least(one.age, places_.ranks[one.rank].quiet), false, scene_.timing);
    });
    std::ranges::sort(missed, {}, [](const Missed& one) {
      return std::tuple(one.communicator, one.sequence, one.has_issued, one.rank);
    });
    for (size_t i = 0; i < missed.size();) {
      size_t end = i + 1;
      while (end < missed.size() && missed[i].sequence != kUnknown && missed[end].sequence == missed[i].sequence &&
             missed[end].communicator == missed[i].communicator && missed[end].has_issued == missed[i].has_issued) {
        ++end;
      }
      AddMissed(std::span(missed).subspan(i, end - i));
      i = end;
    }
  }

  void AddMissed(std::span<const Missed> missed) {
    const Missed& first = missed.front();
    std::vector<uint32_t> ranks, components;
    Duration since = kNoAge;
    for (const Missed& one : missed) {
      ranks.push_back(one.rank);
      components.push_back(scene_.components.of[one.rank]);
      since = Least(since, Least(one.age, places_.ranks[one.rank].quiet));
    }
    Verdict* verdict = Add(VerdictKind::kRankNonCommHang, since, std::move(components));
    if (verdict == nullptr) return;
    verdict->ranks = AsRanks(ranks);
    verdict->communicator = first.communicator;
    verdict->operation = OperationText(observation_, first.operation);
    if (first.sequence == kUnknown) {
      verdict->evidence.push_back(MissedTransferSentence(first));
    } else {
      verdict->sequence = first.sequence;
      verdict->evidence.push_back(MissedSentence(first, ranks));
    }
    for (const Missed& one : missed.first(std::min(missed.size(), kRanksWithEvidenceMax))) {
      verdict->evidence.push_back(places_.ranks[one.rank].is_before
                                      ? BeforeSentence(one.rank)
                                      : OutsideSentence(observation_, one.communicator, places_, one.rank));
      if (places_.ranks[one.rank].quiet != kNoAge) {
        verdict->evidence.push_back(QuietSentence(one.rank, places_.ranks[one.rank].quiet));
      }
    }
  }

  std::string MissedTransferSentence(const Missed& one) const {
    const bool is_begun = observation_.operations[one.operation].start == Start::kStarted;
    std::string text = OperationText(observation_, one.operation) + " in " + GroupText(observation_, one.communicator) +
                       ": rank " + std::to_string(one.by) + (is_begun ? " has begun it" : " issued it" + Ago(one.age));
    if (is_begun && one.age != kNoAge) text += " and waited for " + FormatDuration(one.age);
    return text + ", and " + (one.has_issued ? "the device of " : "") + RankText(one.rank) +
           (one.has_issued ? " has not begun its part." : " has not issued its part.");
  }

  std::string MissedSentence(const Missed& first, std::span<const uint32_t> ranks) const {
    std::vector<uint32_t> ahead;
    const bool is_told = first.has_issued;  // that devices of those have begun
    const GroupPlaces& places = places_.groups[first.communicator];
    for (uint32_t r = places.first_rung; r < places.first_rung + places.rung_count; ++r) {
      for (const Seat& seat : places_.SeatsOf(places_.rungs[r])) {
        if (seat.state == kNone || seat.start == Start::kNotStarted) continue;
        const bool has_issued = observation_.states[seat.state].issued >= first.sequence ||
                                (seat.is_outstanding && seat.position >= first.sequence);
        if (has_issued) ahead.push_back(seat.rank);
      }
    }
    std::ranges::sort(ahead);
    const std::string did = is_told ? " begun it" : " issued it";
    return "Number " + std::to_string(first.sequence) + " in " + GroupText(observation_, first.communicator) + ": " +
           (is_told ? "the devices of " : "") + RanksText(ahead) + HaveOrHas(ahead.size()) + did +
           (first.age == kNoAge ? "" : ", and" + HaveOrHas(ahead.size()) + " waited for " + FormatDuration(first.age)) +
           "; " + (is_told ? "of " : "") + RanksText(ranks) + (is_told ? "" : HaveOrHas(ranks.size())) +
           (is_told ? " only the programs have come to it." : " not.");
  }

  void JudgeStalled(uint32_t rank) {
    const RankPlaces& place = places_.ranks[rank];
    if (place.trails < kTrailsForProof && LeadsToCertain(rank)) return;
    // Nobody trails for longer than others have completed it.
    const auto trails_for = [&](const Seat& seat) {
      return Least(seat.wait, places_.rungs[places_.rung_of[seat.state]].completed);
    };
    const Seat* oldest = nullptr;
    for (const uint32_t state : places_.StatesOf(rank)) {
      if (places_.seat_of[state] == kNone) continue;
      const Seat& seat = places_.seats[places_.seat_of[state]];
      if (seat.trails && (oldest == nullptr || trails_for(seat) > trails_for(*oldest))) oldest = &seat;
    }
    Verdict* verdict =
        Add(VerdictKind::kRankCommHang, Least(trails_for(*oldest), place.quiet), {scene_.components.of[rank]});
    if (verdict == nullptr) return;
    const Rung& rung = places_.rungs[places_.rung_of[oldest->state]];
    const MemberState& state = observation_.states[oldest->state];
    verdict->ranks = {Rank{rank}};
    SetOperation(*verdict, rung);
    std::vector<uint32_t> others;
    const GroupPlaces& group = places_.groups[rung.communicator];
    for (uint32_t r = group.first_rung; r < group.first_rung + group.rung_count; ++r) {
      if (places_.rungs[r].position <= rung.position) continue;
      for (const Seat& seat : places_.SeatsOf(places_.rungs[r])) others.push_back(seat.rank);
    }
    std::ranges::sort(others);
    verdict->evidence.push_back(WhichText(observation_, rung) + ": " + RanksText(others) + HaveOrHas(others.size()) +
                                " completed it, so all have come; " + RankText(rank) + " issued it" + Ago(oldest->age) +
                                " and has not completed it.");
    verdict->evidence.push_back("Rank " + std::to_string(rank) + " has issued " + std::to_string(state.issued) +
                                " there and completed " + std::to_string(state.completed) +
                                "; it is behind others in " + std::to_string(place.trails) + " of the " +
                                Count(place.outstanding, "group") + " in which it has something outstanding.");
  }

  void SetOperation(Verdict& verdict, const Rung& rung) const {
    verdict.communicator = rung.communicator;
    verdict.sequence = rung.position;
    verdict.operation = OperationText(observation_, rung.operation);
  }

  void JudgeOperation(uint32_t index, uint32_t component) {
    const Rung& rung = places_.rungs[index];
    // That they differ is certain, wherever else anybody may stand.
    const bool differs = waits_.differences[index] == Difference::kOperation &&
                         !places_.groups[rung.communicator].carries_point_to_point;
    std::vector<const Seat*> there;  // who stands there and nowhere else
    bool is_told = true;             // that the device has begun it, of all of them: so nothing older holds it up
    bool is_queue = false;           // more is queued behind it, as programs do that leave the waiting to a device
    for (const Seat& seat : places_.SeatsOf(rung)) {
      if (!seat.is_outstanding) continue;
      if (!IsAlive(seat.rank)) return;  // what its end means is told by others
      const bool is_head = places_.ranks[seat.rank].at == seat.state || seat.start == Start::kStarted;
      if (!differs && (!is_head || places_.IsStalled(seat.rank))) continue;
      is_told = is_told && seat.start == Start::kStarted;
      is_queue = is_queue || observation_.states[seat.state].issued > seat.position;
      there.push_back(&seat);
    }
    if (there.empty()) return;
    const bool leads_on = std::ranges::any_of(there, [&](const Seat* seat) {
      return LeadsToCertain(seat->rank) || (!is_queue && leads_to_unseen_[seat->rank]);
    });
    if (!is_told && !differs && leads_on) return;
    if (waits_.differences[index] != Difference::kNothing) return AddMismatch(index, there, component);
    AddStuck(rung, there, component);
  }

  // Since the last of them has come, and since others have completed it, if they have.
  Duration Since(const Rung& rung, const std::vector<const Seat*>& seats) const {
    Duration since = rung.completed;
    for (const Seat* seat : seats) since = Least(since, Least(seat->wait, places_.ranks[seat->rank].quiet));
    return since;
  }

  static std::vector<uint32_t> RanksOf(const std::vector<const Seat*>& seats) {
    std::vector<uint32_t> ranks;
    for (const Seat* seat : seats) ranks.push_back(seat->rank);
    return ranks;
  }

  void AddMismatch(uint32_t index, const std::vector<const Seat*>& there, uint32_t component) {
    const Rung& rung = places_.rungs[index];
    Verdict* verdict = Add(VerdictKind::kCollectiveMismatch, Since(rung, there), {component});
    if (verdict == nullptr) return;
    SetOperation(*verdict, rung);
    const std::vector<Party> parties = PartiesOf(observation_, places_, rung);
    std::vector<uint32_t> all, others;
    for (const Party& party : parties) {
      all.insert(all.end(), party.ranks.begin(), party.ranks.end());
      if (&party != &parties.front()) others.insert(others.end(), party.ranks.begin(), party.ranks.end());
    }
    // Who is wrong, the majority tells, if there is one.
    verdict->is_group = parties.front().ranks.size() <= others.size();
    std::vector<uint32_t>& named = verdict->is_group ? all : others;
    std::ranges::sort(named);
    verdict->ranks = AsRanks(named);
    verdict->evidence.push_back("Number " + std::to_string(rung.position) + " in " +
                                GroupText(observation_, rung.communicator) + " is not the same for all who issued it:");
    for (const Party& party : std::span(parties).first(std::min(parties.size(), kRanksWithEvidenceMax))) {
      const Operation& operation = observation_.operations[party.operation];
      std::string text = Capital(RanksText(party.ranks)) + ": " + OperationText(observation_, party.operation);
      const bool has_root = Value(operation.peer) < observation_.ranks.size();
      verdict->evidence.push_back(text + (has_root ? ", root " + std::to_string(Value(operation.peer)) : "") + ".");
    }
  }

  // All have come, or at least all that are needed, and it does not complete: who of them is behind?
  void AddStuck(const Rung& rung, const std::vector<const Seat*>& there, uint32_t component) {
    const bool is_begun = std::ranges::all_of(there, [](const Seat* seat) { return seat->start == Start::kStarted; });
    const bool is_alone = there.size() == 1;
    const auto group_size = observation_.communicators[rung.communicator].members.size();
    if (rung.is_completed && there.size() * 2 <= group_size) {
      Verdict* verdict = AddStuckVerdict(rung, there, component);
      if (verdict == nullptr) return;
      verdict->evidence.push_back(WhichText(observation_, rung) +
                                  ": all have issued it and others have completed it; " + RanksText(RanksOf(there)) +
                                  HaveOrHas(there.size()) + " not.");
      return;
    }
    if (const std::vector<const Seat*> held = HeldOf(there); !held.empty()) {
      Verdict* verdict = AddStuckVerdict(rung, held, component);
      if (verdict == nullptr) return;
      verdict->evidence.push_back(WhichText(observation_, rung) + ": " + RanksText(RanksOf(there)) +
                                  HaveOrHas(there.size()) + " issued it, and it does not complete.");
      return;
    }
    if (const std::vector<const Seat*> behind = BehindInProgress(there); !behind.empty()) {
      Verdict* verdict = AddStuckVerdict(rung, behind, component);
      if (verdict == nullptr) return;
      uint64_t most = 0;
      for (const Seat* seat : there) most = std::max(most, observation_.states[seat->state].progress);
      verdict->evidence.push_back(WhichText(observation_, rung) + ": all " + std::to_string(there.size()) +
                                  " members are in it; " + RanksText(RanksOf(behind)) + HaveOrHas(behind.size()) +
                                  " come to step " +
                                  std::to_string(observation_.states[behind.front()->state].progress) +
                                  " of the transport, others to step " + std::to_string(most) + ".");
      return;
    }
    Verdict* verdict = AddStuckVerdict(rung, there, component);
    if (verdict == nullptr) return;
    verdict->is_group = !is_alone;
    const std::string begun_text = is_begun ? " and begun" : "";
    verdict->evidence.push_back(WhichText(observation_, rung) + ": " + RanksText(RanksOf(there)) +
                                HaveOrHas(there.size()) + " issued" + begun_text + " it, the last" +
                                (verdict->since ? Ago(*verdict->since) : " at an unknown time") +
                                "; nobody else is needed, and it does not complete.");
    if (!is_alone) {
      verdict->evidence.push_back("None of them is behind the others, so no single rank can be named.");
    }
  }

  Verdict* AddStuckVerdict(const Rung& rung, const std::vector<const Seat*>& seats, uint32_t component) {
    Verdict* verdict = Add(VerdictKind::kRankCommHang, Since(rung, seats), {component});
    if (verdict == nullptr) return nullptr;
    verdict->ranks = AsRanks(RanksOf(seats));
    SetOperation(*verdict, rung);
    return verdict;
  }

  // Those whose process can't go on, where others' can.
  std::vector<const Seat*> HeldOf(const std::vector<const Seat*>& there) const {
    std::vector<const Seat*> held;
    for (const Seat* seat : there) {
      if (observation_.ranks[seat->rank].hold != Hold::kFree) held.push_back(seat);
    }
    return held.size() == there.size() ? std::vector<const Seat*>() : held;
  }

  // Those whose transport has come least far, where all tell how far, and few enough are behind.
  std::vector<const Seat*> BehindInProgress(const std::vector<const Seat*>& there) const {
    std::vector<const Seat*> behind;
    uint64_t least = kUnknown;
    for (const Seat* seat : there) {
      const uint64_t progress = observation_.states[seat->state].progress;
      if (progress == kUnknown) return {};
      if (progress < least) behind.clear();
      least = std::min(least, progress);
      if (progress == least) behind.push_back(seat);
    }
    if (behind.size() * 2 > there.size() || behind.size() == there.size()) return {};
    return behind;
  }

  void JudgeCircle(uint32_t component) {
    std::vector<uint32_t> ranks, met;
    Duration since = kNoAge;
    uint32_t operation = kNone;  // a transfer at which both sides are
    for (const uint32_t node : scene_.components.Nodes(component)) {
      if (node >= Waits::NodeOfUnseen(places_)) continue;
      const RankPlaces& place = places_.ranks[node];
      if (!place.is_ordered || LeadsOn(node)) return;
      ranks.push_back(node);
      since = Least(since, Least(place.age, place.quiet));
      for (const Head& head : places_.HeadsOf(node)) {
        if (head.operation == kNone || waits_.met[head.operation] == kNone) continue;
        const Operation& mine = observation_.operations[head.operation];
        const uint32_t peer = Value(mine.peer);
        if (scene_.components.of[peer] != component) continue;
        met.push_back(node);
        met.push_back(peer);
        if (operation == kNone || head.operation < operation) operation = head.operation;
      }
    }
    if (ranks.size() < 2) return;
    std::ranges::sort(ranks);
    if (!met.empty()) return AddTransfer(operation, std::move(met), since, component);
    Verdict* verdict = Add(VerdictKind::kCyclicWait, since, {component});
    if (verdict == nullptr) return;
    verdict->ranks = AsRanks(ranks);
    verdict->is_group = true;
    verdict->evidence.push_back(Capital(RanksText(ranks)) +
                                " wait for each other in a circle, and for nobody outside of it.");
    for (const uint32_t rank : std::span(ranks).first(std::min(ranks.size(), kRanksWithEvidenceMax))) {
      verdict->evidence.push_back(WaitSentence(rank));
    }
  }

  void JudgeTransfer(const Transfer& transfer, uint32_t component) {
    Duration since = transfer.wait;
    for (const uint32_t rank : transfer.ranks) {
      if (LeadsOn(rank)) return;
      since = Least(since, places_.ranks[rank].quiet);
    }
    AddTransfer(transfer.operation, transfer.ranks, since, component);
  }

  // Both sides of what goes from rank to rank are there, and it does not complete.
  void AddTransfer(uint32_t operation, std::vector<uint32_t> met, Duration since, uint32_t component) {
    std::ranges::sort(met);
    const auto doubles = std::ranges::unique(met);
    met.erase(doubles.begin(), doubles.end());
    Verdict* verdict = Add(VerdictKind::kRankCommHang, since, {component});
    if (verdict == nullptr) return;
    std::vector<uint32_t> held;
    std::ranges::copy_if(met, std::back_inserter(held),
                         [&](uint32_t rank) { return observation_.ranks[rank].hold != Hold::kFree; });
    const bool is_told = !held.empty() && held.size() < met.size();
    verdict->ranks = AsRanks(is_told ? held : met);
    verdict->is_group = !is_told;
    verdict->operation = OperationText(observation_, operation);
    const bool is_begun = observation_.operations[operation].start == Start::kStarted;
    verdict->evidence.push_back(Capital(RanksText(met)) + " send and receive among each other: both sides are " +
                                (is_begun ? "begun" : "issued") +
                                ", nothing else is waited for, and it does not complete.");
    if (!is_told) {
      verdict->evidence.push_back("None of them is behind the others, so no single rank can be named.");
    }
  }

  std::string WaitSentence(uint32_t rank) const {
    const Head& head = places_.HeadsOf(rank).front();
    std::string text = "Rank " + std::to_string(rank) + " waits in ";
    if (head.operation == kNone)
      return text + WhichText(observation_, places_.rungs[places_.rung_of[head.state]]) + ".";
    const Operation& operation = observation_.operations[head.operation];
    const bool is_send = operation.function == Function::kSend;
    return text + OperationText(observation_, head.operation) + (is_send ? " to rank " : " from rank ") +
           std::to_string(Value(operation.peer)) + ".";
  }

  const HangScene& scene_;
  const Observation& observation_;
  const Places& places_;
  const Waits& waits_;
  std::vector<bool> leads_to_certain_;  // empty: nothing is certain
  std::vector<bool> leads_to_unseen_;
  std::vector<HangEnd> ends_;
};

}  // namespace

std::vector<HangEnd> JudgeEnds(const HangScene& scene) { return EndJudge(scene).Judge(); }

std::optional<Level> LevelOfHang(Duration since, bool may_be_error, const HangTiming& timing) {
  if (since == kNoAge) return Level::kWarning;
  if (since <= timing.timeout) return std::nullopt;
  return may_be_error && since > timing.error_after() ? Level::kError : Level::kWarning;
}

}  // namespace aimaster::c4d
