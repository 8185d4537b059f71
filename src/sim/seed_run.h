// SeedRun: one seed, from its number to its verdict.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/world.h"

namespace aimaster::sim {

struct Verdict {
  std::optional<Violation> violation;
  uint64_t digest = 0;  // of the journal's bytes
  uint64_t events = 0;
  JobStatus status{};
};

Verdict RunSeed(uint64_t seed, Break broken, bool traced);
// Twice, and the second time has to be like the first.
Verdict RunSeedTwice(uint64_t seed, Break broken);

}  // namespace aimaster::sim
