#include "sim/checkers.h"

namespace aimaster::sim {

std::vector<std::unique_ptr<Watcher>> MakeCheckers(World& world) {
  std::vector<std::unique_ptr<Watcher>> all;
  for (const auto make : {MakeOneLifeChecker, MakeAloneChecker, MakeRestartLimitChecker, MakeExitsChecker,
                          MakeReplayChecker, MakeDurableFirstChecker, MakeFencingChecker, MakeLeftoversChecker,
                          MakeDecidedDeathsChecker, MakeProgressChecker, MakeSuccessChecker, MakeHangsChecker}) {
    all.push_back(make(world));
  }
  return all;
}

}  // namespace aimaster::sim
