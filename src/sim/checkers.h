// Checkers: the promises, each in a file of its own. What must never happen is one thing, what must happen in the end
// another; each has at least one Break that it catches.
#pragma once

#include <memory>
#include <vector>

#include "sim/watcher.h"

namespace aimaster::sim {

std::unique_ptr<Watcher> MakeOneLifeChecker(World& world);        // never two live attempts of one rank
std::unique_ptr<Watcher> MakeAloneChecker(World& world);          // a worker's failure is its own, in an Async job
std::unique_ptr<Watcher> MakeRestartLimitChecker(World& world);   // never over a limit, never short of it
std::unique_ptr<Watcher> MakeExitsChecker(World& world);          // each exit counted once, as it was
std::unique_ptr<Watcher> MakeReplayChecker(World& world);         // the journal gives the same decisions again
std::unique_ptr<Watcher> MakeDurableFirstChecker(World& world);   // nothing is done that a crash could forget
std::unique_ptr<Watcher> MakeFencingChecker(World& world);        // no older master after a newer one
std::unique_ptr<Watcher> MakeLeftoversChecker(World& world);      // nothing lives on after the job's end
std::unique_ptr<Watcher> MakeDecidedDeathsChecker(World& world);  // nobody is killed whom nobody decided to kill
std::unique_ptr<Watcher> MakeProgressChecker(World& world);       // nothing is stuck; the world itself looks
std::unique_ptr<Watcher> MakeSuccessChecker(World& world);        // success means that every rank ended with 0
std::unique_ptr<Watcher> MakeHangsChecker(World& world);          // a hang is found in time, and none that is not there

std::vector<std::unique_ptr<Watcher>> MakeCheckers(World& world);

}  // namespace aimaster::sim
