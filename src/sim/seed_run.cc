#include "sim/seed_run.h"

namespace aimaster::sim {

Verdict RunSeed(uint64_t seed, Break broken, bool traced) {
  World world(seed, broken, traced);
  world.Run();
  return {.violation = world.violation(),
          .digest = world.journal.Digest(),
          .events = world.events(),
          .status = world.history.job().status};
}

Verdict RunSeedTwice(uint64_t seed, Break broken) {
  const Verdict first = RunSeed(seed, broken, false);
  if (first.violation) return first;
  Verdict second = RunSeed(seed, broken, false);
  if (!second.violation && second.digest != first.digest) {
    second.violation = Violation{"replay", "the same seed gave another journal the second time", {}};
  }
  return second;
}

}  // namespace aimaster::sim
