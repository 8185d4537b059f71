#include "detect/judge_apart.h"

#include <algorithm>
#include <map>
#include <string>

#include "core/check.h"
#include "detect/outlived.h"
#include "detect/rank_cause.h"
#include "detect/root_cause.h"

namespace aimaster {
namespace {

struct FailedInstance {
  std::vector<RankFailure> failures;
  Standing standing = Standing::kSucceeded;  // of that rank of it which is most to blame
};

bool IsOwnFault(const FailedInstance& instance) { return instance.standing < Standing::kConsequence; }

}  // namespace

std::vector<Judgement> JudgeApart(std::span<const RankFailure> failures, uint32_t ranks_of_job,
                                  const RuleTable& rules) {
  CHECK(!failures.empty());
  std::map<InstanceIndex, FailedInstance> instances;
  for (const RankFailure& failure : failures) {
    FailedInstance& instance = instances[failure.instance];
    instance.failures.push_back(failure);
  }
  for (auto& [index, instance] : instances) {
    std::vector<RankFailure> lasting;  // Judge sets the others aside too, and says so
    const bool went_on = std::ranges::any_of(instance.failures,
                                             [](const RankFailure& failure) { return SaysItWentOn(failure.matches); });
    if (went_on) SetAsideOutlived(lasting = instance.failures, rules);
    for (const RankFailure& failure : went_on ? lasting : instance.failures) {
      instance.standing = std::min(instance.standing, CauseOf(failure, rules).standing);
    }
  }
  std::vector<const FailedInstance*> order;
  for (const bool own_fault : {true, false}) {
    for (const auto& [index, instance] : instances) {
      if (IsOwnFault(instance) == own_fault) order.push_back(&instance);
    }
  }
  order.resize(std::min(order.size(), kJudgedApartMax));

  std::vector<Judgement> judgements;
  for (const FailedInstance* instance : order) {
    Judgement judgement = Judge(instance->failures, ranks_of_job, rules);
    if (IsOwnFault(*order.front()) && !IsOwnFault(*instance)) {
      judgement.is_consequence = true;
      judgement.reasons.push_back("rank " + std::to_string(Value(order.front()->failures.front().rank)) +
                                  " failed at the same time by its own fault: this one followed");
    }
    judgements.push_back(std::move(judgement));
  }
  return judgements;
}

}  // namespace aimaster
