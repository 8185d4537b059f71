#include "journal/goodput.h"

#include <algorithm>
#include <map>
#include <optional>

namespace aimaster {
namespace {

// The last one: a start that was tried again has several.
std::optional<Wall> ReadyAt(const RoundState& round) {
  const auto last = std::ranges::find_if(round.stages.rbegin(), round.stages.rend(), [](const StageTime& stage) {
    return stage.stage == Stage::kReady && stage.duration;
  });
  if (last == round.stages.rend()) return std::nullopt;
  return last->start.wall + *last->duration;
}

// When the i-th round ended, or stopped doing its work: `detect` of its failure is the first stage of the round that
// followed, or one of its own when none did.
Wall UntilOf(const std::vector<RoundState>& rounds, size_t i, bool has_failed, Wall end) {
  const bool is_last = i + 1 == rounds.size();
  const Wall ready = ReadyAt(rounds[i]).value_or(rounds[i].start.wall);
  for (const StageTime& stage : is_last ? rounds[i].stages : rounds[i + 1].stages) {
    if (has_failed && stage.stage == Stage::kDetect && stage.start.wall >= ready) return stage.start.wall;
  }
  return rounds[i].end.value_or(end);
}

// Sums by cause. Times that a stepped clock has turned around count as none.
class Account {
 public:
  LostTime& Of(const std::string& cause) {
    LostTime& lost = by_cause_[cause];
    lost.cause = cause;
    return lost;
  }
  std::vector<LostTime> Take() {
    std::vector<LostTime> sorted;
    for (const auto& [cause, lost] : by_cause_) sorted.push_back(lost);
    std::ranges::sort(sorted, [](const LostTime& a, const LostTime& b) {
      return a.total() != b.total() ? a.total() > b.total() : a.cause < b.cause;
    });
    return sorted;
  }

 private:
  std::map<std::string, LostTime> by_cause_;
};

Duration Between(Wall from, Wall to) { return std::max(Duration::zero(), to - from); }

std::string CauseOf(const JobSnapshot& snapshot, Round round) {
  for (const RestartRecord& record : snapshot.records) {
    const bool is_of_round = record.scope == RestartScope::kJob && record.round == round;
    if (is_of_round && !record.judgement.fault.empty()) return record.judgement.fault;
  }
  return snapshot.summary.reason_code.empty() ? "unknown" : snapshot.summary.reason_code;
}

// Whoever was restarted alone was missing while the others went on: its share of the job.
Duration AddRestartsAlone(const JobSnapshot& snapshot, Account& account) {
  Duration all{};
  const auto instances = static_cast<int64_t>(std::max<size_t>(1, snapshot.instances.size()));
  for (const RestartRecord& record : snapshot.records) {
    if (record.scope != RestartScope::kInstance) continue;
    LostTime& lost = account.Of(record.judgement.fault);
    const Duration share = record.duration.value_or(Duration{}) / instances;
    ++lost.times;
    lost.restarting += share;
    all += share;
  }
  return all;
}

}  // namespace

double Goodput::share() const {
  if (wall <= Duration::zero()) return 1;
  return static_cast<double>(productive.count()) / static_cast<double>(wall.count());
}

Goodput MeasureGoodput(const JobSnapshot& snapshot, Wall now) {
  const Wall end = snapshot.summary.end_time.value_or(now);
  const std::vector<RoundState>& rounds = snapshot.rounds;
  Goodput goodput;
  goodput.wall = Between(snapshot.summary.submit_time, end);
  goodput.knows_checkpoints =
      std::ranges::any_of(rounds, [](const RoundState& round) { return round.checkpoint.has_value(); });
  Account account;
  std::string cause = "starting";
  Wall since = snapshot.summary.submit_time;  // not ready since then, for that cause
  account.Of(cause).times = 1;
  for (size_t i = 0; i < rounds.size(); ++i) {
    const RoundState& round = rounds[i];
    const bool has_failed = i + 1 < rounds.size() || round.result == RoundResult::kFailed;
    const Wall until = UntilOf(rounds, i, has_failed, end);
    const Wall ready = ReadyAt(round).value_or(until);
    account.Of(cause).restarting += Between(since, ready);
    since = has_failed ? until : end;
    const Duration ran = Between(ready, since);
    Duration redone{};
    if (has_failed) {
      cause = CauseOf(snapshot, round.round);
      if (goodput.knows_checkpoints)
        redone = round.checkpoint ? std::min(ran, Between(round.checkpoint->at, until)) : ran;
      ++account.Of(cause).times;
      account.Of(cause).redone += redone;
    }
    goodput.productive += ran - redone;
  }
  account.Of(cause).restarting += Between(since, end);
  goodput.productive -= std::min(goodput.productive, AddRestartsAlone(snapshot, account));
  goodput.lost = account.Take();
  return goodput;
}

}  // namespace aimaster
