#include "sim/collectives/judge.h"

#include <algorithm>
#include <chrono>
#include <optional>

namespace aimaster::sim::collectives {
namespace {

using c4d::Level;
using c4d::Verdict;
using c4d::VerdictKind;
using namespace std::chrono_literals;

// Ages of an operation begin when it is called, and those of a wait when the device comes to it: so a level is only
// wrong beyond this.
constexpr Duration kLevelTolerance = 45s;

std::string TextOf(const Verdict& verdict) {
  std::string text = std::string(c4d::Name(verdict.kind)) + " (" + std::string(c4d::Name(verdict.level)) + ") of ";
  text += verdict.is_group ? "the group of ranks" : "ranks";
  size_t shown = 0;
  for (const Rank rank : verdict.ranks) {
    if (++shown > 8) break;
    text += " " + std::to_string(Value(rank));
  }
  if (verdict.ranks.size() > 8) text += " ... (" + std::to_string(verdict.ranks.size()) + ")";
  return text;
}

// What a verdict has to say of a fault that has happened.
enum class Demand : uint8_t { kOutside, kInside, kMismatch, kSkip, kCycle };

Demand DemandOf(FaultKind kind) {
  switch (kind) {
    case FaultKind::kHostBefore:
    case FaultKind::kHostAhead:
    case FaultKind::kDeviceBefore:
    case FaultKind::kSlowRank:
    case FaultKind::kSlowLink:
      return Demand::kOutside;
    case FaultKind::kDeviceInside:
    case FaultKind::kStopped:
      return Demand::kInside;
    case FaultKind::kMismatch:
      return Demand::kMismatch;
    case FaultKind::kSkipped:
      return Demand::kSkip;
    case FaultKind::kOppositeOrder:
      return Demand::kCycle;
  }
  return Demand::kOutside;
}

bool Names(const Verdict& verdict, uint32_t rank) { return std::ranges::binary_search(verdict.ranks, Rank{rank}); }

class Court {
 public:
  Court(const Circumstances& circumstances, const std::vector<Verdict>& verdicts)
      : at_(circumstances), sight_(circumstances.scenario.sight), verdicts_(verdicts) {
    for (const Fault& fault : at_.cluster.faults()) {
      if (fault.fired) fired_.push_back(fault);
    }
  }

  Judgement Decide() {
    for (const Verdict& verdict : verdicts_) CheckAccusation(verdict);
    for (const Fault& fault : fired_) CheckNamed(fault);
    return judgement_;
  }

 private:
  void Complain(const Verdict& verdict, const std::string& why) {
    judgement_.false_accusations.push_back(TextOf(verdict) + ": " + why);
  }

  // Accusations -------------------------------------------------------------------------------------------------------

  void CheckAccusation(const Verdict& verdict) {
    if (verdict.ranks.empty()) return Complain(verdict, "accuses nobody");
    if (!std::ranges::is_sorted(verdict.ranks)) return Complain(verdict, "ranks are not ascending");
    if (verdict.kind == VerdictKind::kNoProbeData) {
      for (const Rank rank : verdict.ranks) {
        if (!sight_.is_hidden[Value(rank)]) return Complain(verdict, "rank was observed");
      }
      return;
    }
    if (sight_.ages && LongestWait() < at_.scenario.timing.timeout) {
      return Complain(verdict, "nobody has waited for as long as the timeout");
    }
    switch (verdict.kind) {
      case VerdictKind::kRankNonCommHang:
        if (verdict.level != Level::kWarning) Complain(verdict, "is a Warning always");
        for (const Rank rank : verdict.ranks) CheckOutside(verdict, Value(rank));
        return;
      case VerdictKind::kRankCommHang:
        verdict.is_group ? CheckGroup(verdict) : CheckInside(verdict);
        return CheckLevel(verdict);
      case VerdictKind::kCollectiveMismatch:
        return CheckMismatch(verdict);
      case VerdictKind::kCyclicWait:
        return CheckCycle(verdict);
      case VerdictKind::kRankCommSlow:
      case VerdictKind::kRankNonCommSlow:
      case VerdictKind::kNoProbeData:
        return Complain(verdict, "is no verdict on a hang");
    }
  }

  const Fault* FaultOf(uint32_t rank) const {
    for (const Fault& fault : fired_) {
      if (fault.rank == rank) return &fault;
    }
    return nullptr;
  }

  // Healthy, and others have waited for it, and for nobody behind it, for the timeout.
  bool IsWaitedFor(uint32_t rank) const {
    for (const Truth* truth : {&at_.before, &at_.after}) {
      const RankTruth& of_rank = truth->ranks[rank];
      if (of_rank.waits) continue;
      Duration missed = sight_.started ? of_rank.missed : std::max(of_rank.missed, of_rank.missed_call);
      // Seen at some time between the two.
      if (truth == &at_.before && missed > Duration::zero()) missed += at_.scenario.collecting;
      if (missed > Duration::zero() && (!sight_.ages || missed >= at_.scenario.timing.timeout)) return true;
    }
    return false;
  }
  // Where it is not seen when a device comes to an operation, those wait who have called it.
  Duration LongestWait() const {
    const Duration before = sight_.started ? at_.before.longest_wait : at_.before.longest_call;
    const Duration after = sight_.started ? at_.after.longest_wait : at_.after.longest_call;
    // It may have lasted until the states were collected.
    const bool goes_on = !at_.scenario.expects_hang && before > Duration::zero();
    return std::max(goes_on ? before + at_.scenario.collecting : before, after);
  }
  // By what it has called and `started` unseen, it may as well be inside.
  bool LooksInside(uint32_t rank) const { return !sight_.started && at_.after.ranks[rank].has_outstanding; }

  void CheckOutside(const Verdict& verdict, uint32_t rank) {
    const std::string name = "rank " + std::to_string(rank);
    if (sight_.is_hidden[rank]) return Complain(verdict, name + " was not observed");
    if (const Fault* fault = FaultOf(rank)) {
      if (DemandOf(fault->kind) == Demand::kInside) Complain(verdict, name + " is stuck inside");
      return;
    }
    if (!IsWaitedFor(rank)) Complain(verdict, name + " keeps nobody");
  }

  void CheckInside(const Verdict& verdict) {
    for (const Rank accused : verdict.ranks) {
      const uint32_t rank = Value(accused);
      const std::string name = "rank " + std::to_string(rank);
      if (sight_.is_hidden[rank]) return Complain(verdict, name + " was not observed");
      const Fault* fault = FaultOf(rank);
      if (fault == nullptr && !IsWaitedFor(rank)) return Complain(verdict, name + " keeps nobody");
      if (fault != nullptr && DemandOf(fault->kind) == Demand::kInside) continue;
      if (!LooksInside(rank)) return Complain(verdict, name + " is not stuck inside");
    }
  }

  bool HasRoot(const Verdict& verdict) const {
    return std::ranges::any_of(verdict.ranks,
                               [&](Rank rank) { return FaultOf(Value(rank)) != nullptr || IsWaitedFor(Value(rank)); });
  }

  // It has to be the one in which the culprit is; beside it others only where nothing tells them from it.
  void CheckGroup(const Verdict& verdict) {
    if (!HasRoot(verdict)) {
      const bool cannot_tell = !OrderIsSeen();
      const bool right_too = std::ranges::any_of(
          verdicts_, [&](const Verdict& v) { return v.kind == VerdictKind::kRankCommHang && HasRoot(v); });
      if (!cannot_tell || !right_too) Complain(verdict, "the culprit is not in it");
      return;
    }
    if (!sight_.started) return;
    for (const Fault& fault : fired_) {
      if (!Names(verdict, fault.rank)) continue;
      const bool is_right_kind = DemandOf(fault.kind) == Demand::kInside || LacksDescriptions(fault);
      if (is_right_kind && (!verdict.communicator || *verdict.communicator == fault.group)) return;
      if (sight_.is_hidden[fault.rank]) return;  // what it does is not seen
    }
    Complain(verdict, "nobody is stuck inside that group");
  }

  void CheckLevel(const Verdict& verdict) {
    if (!sight_.ages) return;
    const Duration longest = LongestWait();
    const Duration limit = at_.scenario.timing.error_after();
    if (verdict.level == Level::kError && longest < limit - kLevelTolerance) Complain(verdict, "too early for Error");
    if (verdict.level == Level::kInfo) Complain(verdict, "a hang is no Info");
  }

  void CheckMismatch(const Verdict& verdict) {
    for (const Fault& fault : fired_) {
      const Demand demand = DemandOf(fault.kind);
      if (demand != Demand::kMismatch && demand != Demand::kSkip) continue;
      if (demand == Demand::kMismatch && verdict.communicator && *verdict.communicator != fault.group) continue;
      if (Names(verdict, fault.rank) || sight_.is_hidden[fault.rank]) return;
    }
    Complain(verdict, "no rank of these called another operation");
  }

  void CheckCycle(const Verdict& verdict) {
    for (const Fault& fault : fired_) {
      const Demand demand = DemandOf(fault.kind);
      if (demand != Demand::kCycle && demand != Demand::kSkip && !LosesTransfers(fault)) continue;
      if (Names(verdict, fault.rank) || sight_.is_hidden[fault.rank]) return;
    }
    Complain(verdict, "there is no such circle");
  }

  // Culprits ----------------------------------------------------------------------------------------------------------

  size_t ObservedIn(uint32_t group) const {
    return static_cast<size_t>(std::ranges::count_if(at_.cluster.layout().groups()[group].members,
                                                     [&](uint32_t rank) { return !sight_.is_hidden[rank]; }));
  }

  // Which of a rank's operations it stands in.
  bool OrderIsSeen() const { return sight_.started || sight_.ages || at_.scenario.mode == Mode::kSynchronous; }
  // And surely: of one that is not kept no age is known, and nobody knows of a send that is not kept.
  bool OrderIsSure() const {
    return sight_.started || at_.scenario.mode == Mode::kSynchronous || (sight_.ages && sight_.kept == 0);
  }
  bool AllAreSeen(uint32_t group) const {
    return ObservedIn(group) == at_.cluster.layout().groups()[group].members.size();
  }
  // Of sends and receives that are no longer kept, no counter tells: one end seems to be elsewhere.
  bool LosesTransfers(const Fault& fault) const {
    return sight_.kept != 0 && at_.cluster.layout().groups()[fault.group].part == Part::kPipeline;
  }
  // Some of those that it has called itself: one of them may be what it waits in.
  bool HasLostTransfers(const Fault& fault) const { return at_.observation.ranks[fault.rank].has_lost_operations; }
  // That all have come to an operation, and which one it is, where only calls are seen.
  bool LooksStuckInside(const Fault& fault) const {
    return OrderIsSure() && AllAreSeen(fault.group) && !LosesTransfers(fault);
  }

  // The operation in which it called something else is not among those that the observer sees, of it or of enough
  // others.
  bool LacksDescriptions(const Fault& fault) const {
    size_t described = 0;
    bool is_own_described = false;
    for (const c4d::MemberState& state : at_.observation.states) {
      if (state.communicator != fault.group) continue;
      for (uint32_t i = 0; i < state.operation_count; ++i) {
        if (at_.observation.operations[state.first_operation + i].sequence != fault.sequence) continue;
        ++described;
        is_own_described |= state.rank == Rank{fault.rank};
      }
    }
    return !is_own_described || described < 2;
  }

  void CheckNamed(const Fault& fault) {
    if (sight_.is_hidden[fault.rank]) return;
    const RankTruth& truth = at_.after.ranks[fault.rank];
    const Duration timeout = at_.scenario.timing.timeout;
    switch (DemandOf(fault.kind)) {
      case Demand::kOutside:
        if (!truth.is_root() || truth.missed_seen == Duration::zero()) return;
        if (sight_.ages && (truth.missed_seen < timeout || SinceLastCrossing(fault.rank) < timeout)) return;
        if (fault.kind == FaultKind::kDeviceBefore &&
            (LosesTransfers(fault) || HasLostTransfers(fault) || (!sight_.started && !LooksStuckInside(fault)))) {
          return;
        }
        return Require(fault, [&](const Verdict& v) {
          if (!Names(v, fault.rank)) return false;
          if (v.kind == VerdictKind::kRankNonCommHang) return true;
          return v.kind == VerdictKind::kRankCommHang && LooksInside(fault.rank);
        });
      case Demand::kInside: {
        if (truth.waits || ObservedIn(fault.group) < 2) return;
        if (!LooksStuckInside(fault) && !fault.others_complete) return;
        const Duration since = SinceAllCame(fault);
        if (sight_.ages && since < timeout) return;
        const bool can_be_named = CanBeNamed(fault);
        Require(fault, [&](const Verdict& v) {
          if (v.kind != VerdictKind::kRankCommHang || !Names(v, fault.rank)) return false;
          if (sight_.ages && since > at_.scenario.timing.error_after() + kLevelTolerance && v.level != Level::kError) {
            return false;
          }
          return !v.is_group || !can_be_named;
        });
        return;
      }
      case Demand::kMismatch:
        if (ObservedIn(fault.group) < 2 || (sight_.ages && SinceAllCame(fault) < timeout)) return;
        if ((LacksDescriptions(fault) || IsTolerable(fault)) && !LooksStuckInside(fault)) return;
        return Require(fault, [&](const Verdict& v) {
          if (!Names(v, fault.rank)) return false;
          if (v.kind == VerdictKind::kCollectiveMismatch) return v.ranks.size() == 1 || !MajorityIsSeen(fault);
          return v.kind == VerdictKind::kRankCommHang && v.is_group && LacksDescriptions(fault);
        });
      case Demand::kSkip:
      case Demand::kCycle:
        // All who share the circle have to be seen, and for as long as the timeout; a hidden one may be why.
        if (sight_.ages && at_.after.longest_wait < timeout) return;
        if (std::ranges::count(sight_.is_hidden, true) > 0 || !OrderIsSure()) return;
        return Require(fault, [&](const Verdict& v) {
          if (!Names(v, fault.rank)) return false;
          if (v.kind == VerdictKind::kCyclicWait) return true;
          if (v.kind == VerdictKind::kCollectiveMismatch) return fault.kind == FaultKind::kSkipped;
          return v.kind == VerdictKind::kRankCommHang && v.is_group && (!sight_.started || sight_.kept != 0);
        });
    }
  }

  // Some libraries take sizes and types that differ: alone that explains a hang only where nothing else can.
  static bool IsTolerable(const Fault& fault) {
    return fault.difference == Difference::kCount || fault.difference == Difference::kType;
  }
  // Most of those whose call is seen called the same, and can be told from the one that did not.
  bool MajorityIsSeen(const Fault& fault) const { return ObservedIn(fault.group) >= 3 && sight_.kept == 0; }

  // It may have been missed for longer than it has been outside.
  Duration SinceLastCrossing(uint32_t rank) const { return at_.cluster.now() - at_.cluster.LastCrossing(rank); }

  Duration SinceAllCame(const Fault& fault) const {
    for (const Outstanding& operation : at_.cluster.MemberOf(fault.rank, fault.group).outstanding) {
      const Meeting* meeting = at_.cluster.FindMeeting(fault.rank, operation);
      if (meeting != nullptr && (meeting->stuck >= 0 || meeting->differs))
        return at_.cluster.now() - meeting->last_arrival;
    }
    return Duration::zero();
  }

  bool CanBeNamed(const Fault& fault) const {
    for (const Outstanding& operation : at_.cluster.MemberOf(fault.rank, fault.group).outstanding) {
      if (c4d::IsPointToPoint(operation.call.function) || operation.sequence != fault.sequence) continue;
      return fault.others_complete || (sight_.progress && fault.shows_behind);
    }
    return false;
  }

  template <typename Suffices>
  void Require(const Fault& fault, Suffices suffices) {
    ++judgement_.required;
    if (std::ranges::any_of(verdicts_, suffices)) return;
    judgement_.misses.push_back("no verdict tells of the " + std::string(Name(fault.kind)) + " of rank " +
                                std::to_string(fault.rank));
  }

  const Circumstances& at_;
  const Sight& sight_;
  const std::vector<Verdict>& verdicts_;
  std::vector<Fault> fired_;
  Judgement judgement_;
};

}  // namespace

Judgement Judge(const Circumstances& circumstances, const std::vector<Verdict>& verdicts) {
  return Court(circumstances, verdicts).Decide();
}

}  // namespace aimaster::sim::collectives
