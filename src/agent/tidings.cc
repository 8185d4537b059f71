#include "agent/tidings.h"

#include <algorithm>

#include "agent/limits.h"

namespace aimaster::agent {

void Tidings::SetStep(RankKey rank, uint64_t step, std::optional<double> loss, Monotonic now) {
  Told& told = told_[rank];
  if (!told.step || step > *told.step) told.advanced = now;
  told.step = step;
  if (!loss) return;
  told.loss = loss;
  told.loss_at = now;
}

void Tidings::SetCheckpoint(RankKey rank, uint64_t step, Monotonic now) {
  Told& told = told_[rank];
  told.checkpoint_step = step;
  told.checkpoint_at = told.advanced = now;
}

std::optional<uint64_t> Tidings::StepOf(RankKey rank) const {
  const auto found = told_.find(rank);
  return found == told_.end() ? std::nullopt : found->second.step;
}

std::optional<Tidings::Progress> Tidings::Overall() const {
  if (told_.empty()) return std::nullopt;
  Progress all;
  Monotonic loss_at;
  for (const auto& [rank, told] : told_) {
    all.step = std::max(all.step, told.step.value_or(0));
    all.advanced = std::max(all.advanced, told.advanced);
    if (told.checkpoint_step && (!all.checkpoint_step || told.checkpoint_at > all.checkpoint_at)) {
      all.checkpoint_step = told.checkpoint_step;
      all.checkpoint_at = told.checkpoint_at;
    }
    if (told.loss && (!all.loss || told.loss_at > loss_at)) {
      all.loss = told.loss;
      loss_at = told.loss_at;
    }
  }
  return all;
}

bool Tidings::MaySpeak(RankKey rank, Monotonic now) {
  Budget& budget = budgets_[rank];
  budget.spent = std::max(Duration::zero(), budget.spent - (now - budget.since));
  budget.since = now;
  const Duration cost = budget.said < kMessagesSoon ? Duration(kMessageEvery) : Duration(kMessageSeldom);
  if (budget.spent + cost > kMessagesAtOnce * Duration(kMessageEvery)) return false;
  budget.spent += cost;
  budget.said = std::min(budget.said + 1, kMessagesSoon);
  return true;
}

void Tidings::Forget(AttemptKey attempt) {
  std::erase_if(told_, [&](const auto& entry) { return entry.first.first == attempt; });
  std::erase_if(budgets_, [&](const auto& entry) { return entry.first.first == attempt; });
}

bool Tidings::SetHang(const HangSetting& setting) {
  if (hang_ && setting.round < hang_->round) return false;
  if (hang_ && setting.round == hang_->round && setting.set_at_ns < hang_->set_at_ns) return false;
  hang_ = setting;
  return true;
}

bool Tidings::BeginRound(uint32_t round) {
  if (!hang_ || hang_->round >= round) return false;
  hang_.reset();
  return true;
}

uint64_t SaidAtNs(std::optional<uint64_t> callers, Monotonic now) {
  const auto here = static_cast<uint64_t>(now.since_origin.count());
  const auto most = static_cast<uint64_t>(Duration(kSaidAtMost).count());
  const bool is_likely = callers && *callers <= here && here - *callers <= most;
  return is_likely ? *callers : here;
}

}  // namespace aimaster::agent
