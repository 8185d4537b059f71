#include "c4d/slow_watch.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <string>
#include <utility>

#include "core/count.h"

namespace aimaster::c4d {
namespace {

constexpr double kSomebodyLate = 0.7;  // of P
constexpr double kMostOf = 0.6;        // of the operations of a window
constexpr double kOneAlone = 0.5;      // of how long the first waited, that also the last but one did
constexpr double kWaitsItself = 0.7;   // of how long others waited for it, beyond what is usual
constexpr double kRegularWaitsItself = 0.3;
constexpr uint32_t kOftenLate = 2;   // one of so many operations
constexpr double kNearlyAll = 0.85;  // of the operations of a kind
constexpr uint32_t kLateMin = 8;     // operations of a window
constexpr double kForgetEachWindow = 1.01;
constexpr uint32_t kWindowsOfBase = 2;  // the first holds the first step
constexpr uint32_t kWindowsKept = 60;   // of a kind of operation that does not happen any more
constexpr uint32_t kWindowsPending = 2;

Duration Times(Duration duration, double factor) {
  return Duration(static_cast<int64_t>(static_cast<double>(duration.count()) * factor));
}
double Ratio(Duration a, Duration b) { return static_cast<double>(a.count()) / static_cast<double>(b.count()); }

uint8_t SizeOf(uint64_t bytes) { return static_cast<uint8_t>(std::bit_width(bytes)); }

// Of at least one; puts them into another order.
Duration Middle(std::span<Duration> durations) {
  const auto middle = durations.begin() + static_cast<ptrdiff_t>(durations.size() / 2);
  std::ranges::nth_element(durations, middle);
  return *middle;
}

std::string Factor(double factor) {
  const std::string text = std::to_string(factor);
  return text.substr(0, text.find('.') + 2);
}

}  // namespace

void SlowWatch::History::Add(bool was, uint32_t windows) {
  bits = static_cast<uint8_t>((bits << 1 | (was ? 1 : 0)) & ((1u << windows) - 1));
  count = static_cast<uint8_t>(std::min<uint32_t>(count + 1, windows));
}

uint32_t SlowWatch::History::slow() const { return static_cast<uint32_t>(std::popcount(bits)); }

SlowWatch::Kind* SlowWatch::KindOf(const KindKey& key) {
  auto found = kinds_.find(key);
  if (found == kinds_.end()) {
    if (kinds_.size() >= limits_.kinds_max) return nullptr;
    found = kinds_.emplace(key, Kind{}).first;
  }
  found->second.last_window = window_;
  return &found->second;
}

void SlowWatch::Add(const FinishedOperation& operation) {
  const KindKey key{operation.communicator, operation.function, SizeOf(operation.bytes)};
  const bool is_common = IsPointToPoint(operation.function);
  const bool is_bad = Value(operation.rank) >= limits_.ranks_max || operation.duration < Duration::zero() ||
                      (!is_common && operation.members < 2);
  Kind* kind = is_bad || is_common ? nullptr : KindOf(key);
  if (kind == nullptr && (is_bad || !is_common)) {
    ++dropped_;
    return;
  }
  if (ranks_.size() <= Value(operation.rank)) ranks_.resize(Value(operation.rank) + 1);
  Tally& tally = ranks_[Value(operation.rank)];
  if (is_common) {
    // Who receives from a slow one may wait each time, so that no base would tell.
    tally.waited += operation.duration;
    return;
  }
  if (kind->windows >= kWindowsOfBase && operation.duration > kind->base) {
    tally.waited += (operation.duration - kind->base) * operation.weight;
  }
  ++tally.finished;

  const auto at = std::pair(operation.communicator, operation.sequence);
  auto found = pending_.find(at);
  if (found == pending_.end()) {
    if (pending_.size() >= limits_.pending_max) {
      ++dropped_;
      return;
    }
    found = pending_.emplace(at, Pending{.kind = key, .members = operation.members, .window = window_}).first;
  }
  Pending& pending = found->second;
  pending.weight = std::max(pending.weight, operation.weight);
  const Duration duration = operation.duration;
  if (pending.told == 0 || duration < pending.least) {
    pending.second = pending.told == 0 ? Duration::max() : pending.least;
    pending.least = duration;
    pending.last = operation.rank;
  } else {
    pending.second = std::min(pending.second, duration);
  }
  pending.most = std::max(pending.most, duration);
  if (++pending.told < pending.members) return;
  Finish(pending);
  pending_.erase(found);
}

// All have told how long they were in it.
void SlowWatch::Finish(const Pending& pending) {
  Kind& kind = kinds_.at(pending.kind);
  auto place =
      std::ranges::upper_bound(kind.least.begin(), kind.least.begin() + std::min(kind.finished, 4u), pending.least);
  if (place != kind.least.end()) {
    std::shift_right(place, kind.least.end(), 1);
    *place = pending.least;
  }
  kind.sample[kind.finished % kind.sample.size()] = pending.least;
  ++kind.finished;
  if (kind.windows < kWindowsOfBase) return;

  ++kind.judged;
  const Duration above = pending.most - kind.base;
  if (above < std::max(limits_.difference_min, Times(kind.base, limits_.slow_factor - 1))) return;  // nothing is slow
  const Duration spread = pending.most - pending.least;
  const double p = Ratio(spread, above);
  if (p >= kSomebodyLate) {
    // Where several are late, nobody is a straggler.
    const Duration alone = pending.second - pending.least;
    if (Ratio(alone, spread) < kOneAlone) return;
    Tally& tally = ranks_[Value(pending.last)];
    tally.late += alone * pending.weight;
    ++tally.late_count;
    if (kind.late_lead == 0 && kind.late_rank != pending.last) {
      kind.late_rank = pending.last;
      kind.late_times = 0;
    }
    if (kind.late_rank == pending.last) {
      ++kind.late_lead;
      ++kind.late_times;
    } else {
      --kind.late_lead;
    }
    const uint32_t group = std::get<0>(pending.kind);
    if (tally.late_in_lead == 0) tally.late_in = group;
    if (tally.late_in == group) {
      ++tally.late_in_lead;
    } else {
      --tally.late_in_lead;
    }
  } else if (pending.least >= Times(kind.usual, limits_.slow_factor)) {
    ++kind.slow;
    kind.slowest = std::max(kind.slowest, pending.least);
  }
}

std::vector<Verdict> SlowWatch::CloseWindow(Duration length, std::span<const Communicator> communicators) {
  for (const auto& [_, kind] : kinds_) {
    if (kind.late_times >= kLateMin && kind.late_times >= kNearlyAll * kind.judged) {
      ranks_[Value(kind.late_rank)].is_regular = true;
    }
  }
  std::vector<Rank> late;
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    Tally& tally = ranks_[rank];
    if (tally.finished < limits_.operations_min) continue;
    const bool is_late = IsLate(Rank{rank}, tally, length, communicators);
    tally.history.Add(is_late, limits_.windows);
    // What is late in one kind of operation alone may be one or two long steps.
    const uint32_t windows = limits_.windows_slow + (IsOften(tally) ? 0 : 1);
    if (is_late && tally.history.slow() >= windows) late.push_back(Rank{rank});
  }
  LeaveOutWholeGroups(late, communicators);
  std::ranges::sort(late, {}, [&](Rank rank) { return std::pair(-ranks_[Value(rank)].late, rank); });
  std::vector<Verdict> verdicts;
  for (const Rank rank : late) {
    if (verdicts.size() < limits_.verdicts_max) verdicts.push_back(LateVerdict(rank, ranks_[Value(rank)], length));
  }
  CloseKinds();
  for (Verdict& verdict : SlowGroups(communicators)) {
    if (verdicts.size() < 2 * limits_.verdicts_max) verdicts.push_back(std::move(verdict));
  }
  for (auto& [_, kind] : kinds_) kind.finished = kind.judged = kind.slow = kind.late_lead = kind.late_times = 0;
  for (Tally& tally : ranks_) tally = {.history = tally.history};
  std::erase_if(pending_, [&](const auto& entry) { return entry.second.window + kWindowsPending <= window_; });
  std::erase_if(kinds_, [&](const auto& entry) { return entry.second.last_window + kWindowsKept <= window_; });
  ++window_;
  return verdicts;
}

bool SlowWatch::IsOften(const Tally& tally) { return kOftenLate * tally.late_count >= tally.finished; }

bool SlowWatch::IsLate(Rank rank, const Tally& tally, Duration length,
                       std::span<const Communicator> communicators) const {
  if (tally.late_count < limits_.operations_min || tally.late <= Times(length, limits_.late_share) ||
      tally.late_in >= communicators.size() || !(IsOften(tally) || tally.is_regular)) {
    return false;
  }
  const Duration waited = tally.waited - WaitOfOthers(rank, communicators[tally.late_in].members);
  return waited < Times(tally.late, IsOften(tally) ? kWaitsItself : kRegularWaitsItself);
}

void SlowWatch::LeaveOutWholeGroups(std::vector<Rank>& late, std::span<const Communicator> communicators) const {
  if (late.size() < 2) return;
  std::vector<Rank> left_out;
  for (uint32_t group = 0; group < communicators.size(); ++group) {
    const std::vector<Rank>& members = communicators[group].members;
    std::vector<Rank> together;
    for (const Rank member : members) {
      const bool is_late = std::ranges::binary_search(late, member) && ranks_[Value(member)].late_in != group;
      if (is_late) together.push_back(member);
    }
    if (together.size() >= 2 && 2 * together.size() >= members.size())
      std::ranges::copy(together, back_inserter(left_out));
  }
  std::ranges::sort(left_out);
  std::erase_if(late, [&](Rank rank) { return std::ranges::binary_search(left_out, rank); });
}

Duration SlowWatch::WaitOfOthers(Rank rank, std::span<const Rank> members) const {
  std::vector<Duration> waits;
  for (const Rank member : members) {
    if (member == rank || Value(member) >= ranks_.size()) continue;
    waits.push_back(std::max(ranks_[Value(member)].waited - ranks_[Value(rank)].late, Duration::zero()));
  }
  return waits.empty() ? Duration::zero() : Middle(waits);
}

void SlowWatch::CloseKinds() {
  for (auto& [key, kind] : kinds_) {
    if (kind.finished < limits_.operations_min) continue;
    if (kind.judged >= limits_.operations_min) {
      kind.history.Add(kind.slow >= static_cast<uint32_t>(kMostOf * kind.judged), limits_.windows);
    }
    // A tenth of all, or the fourth.
    const Duration low = kind.least[std::min<uint32_t>((kind.finished - 1) / 10, 3)];
    kind.base = Lower(kind, kind.base, low);
    kind.usual = Lower(kind, kind.usual,
                       Middle(std::span(kind.sample).first(std::min<size_t>(kind.finished, kind.sample.size()))));
    ++kind.windows;
  }
}

// Slowly upwards: what is slow for good, as after a change of the program, is not slow for ever.
Duration SlowWatch::Lower(const Kind& kind, Duration known, Duration now) {
  const bool is_first = kind.windows < kWindowsOfBase;  // and that of the first step is forgotten
  return is_first || now < known ? now : std::min(Times(known, kForgetEachWindow), now);
}

Verdict SlowWatch::LateVerdict(Rank rank, const Tally& tally, Duration length) const {
  Verdict verdict{.kind = VerdictKind::kRankNonCommSlow, .level = Level::kInfo, .ranks = {rank}};
  verdict.since = length * tally.history.slow();
  verdict.evidence.push_back("Rank " + std::to_string(Value(rank)) + " came last, and alone, to " +
                             std::to_string(tally.late_count) + " of its " + Count(tally.finished, "collective") +
                             " that were compared; others waited for it for " + FormatDuration(tally.late) +
                             " of the last " + FormatDuration(length) + ", and it waited for " +
                             FormatDuration(tally.waited) + " itself.");
  verdict.evidence.push_back("So in " + std::to_string(tally.history.slow()) + " of the last " +
                             Count(tally.history.count, "window") + ".");
  return verdict;
}

// Groups of which most operations are far slower than they can be, and nobody is late.
std::vector<Verdict> SlowWatch::SlowGroups(std::span<const Communicator> communicators) const {
  std::map<uint32_t, std::pair<double, std::string>> slow;  // the worst of each group
  for (const auto& [key, kind] : kinds_) {
    const auto& [communicator, function, size] = key;
    const bool is_slow = kind.judged >= limits_.operations_min && (kind.history.bits & 1) != 0 &&
                         kind.history.slow() >= limits_.windows_slow && communicator < communicators.size();
    if (!is_slow || kind.usual <= Duration::zero()) continue;
    const double factor = Ratio(kind.slowest, kind.usual);
    auto& [worst, sentence] = slow[communicator];
    if (factor <= worst) continue;
    worst = factor;
    sentence = std::to_string(kind.slow) + " of " + Count(kind.judged, std::string(Name(function))) + " of up to " +
               std::to_string(size == 0 ? 0 : (uint64_t{1} << (size - 1)) * 2 - 1) + " bytes in " +
               communicators[communicator].name + " took up to " + Factor(factor) +
               " times as long as usual, also for who came last: " + FormatDuration(kind.slowest) +
               " is what that took in the slowest.";
  }
  // The one that is in more of them than anybody else is what they share.
  std::map<Rank, uint32_t> shared;
  for (const auto& [communicator, _] : slow) {
    for (const Rank member : communicators[communicator].members) ++shared[member];
  }
  uint32_t most = 0, with_most = 0;
  Rank common{};
  for (const auto& [rank, count] : shared) {
    if (count > most) with_most = 0;
    if (count >= most) {
      most = count;
      common = rank;
      ++with_most;
    }
  }
  std::vector<Verdict> verdicts;
  if (most >= 2 && most == slow.size() && with_most == 1) {
    Verdict& verdict = verdicts.emplace_back();
    verdict.kind = VerdictKind::kRankCommSlow;
    verdict.ranks = {common};
    for (const auto& [_, worst] : slow) {
      if (verdict.evidence.size() < 4) verdict.evidence.push_back(worst.second);
    }
    verdict.evidence.push_back("Rank " + std::to_string(Value(common)) + " is the only one in all " +
                               Count(slow.size(), "group") + " that are slow.");
    return verdicts;
  }
  for (const auto& [communicator, worst] : slow) {
    if (verdicts.size() == limits_.verdicts_max) break;
    Verdict& verdict = verdicts.emplace_back();
    verdict.kind = VerdictKind::kRankCommSlow;
    verdict.ranks = communicators[communicator].members;
    verdict.is_group = true;
    verdict.communicator = communicator;
    verdict.evidence.push_back(worst.second);
  }
  return verdicts;
}

}  // namespace aimaster::c4d
