// SeedRun: one seed, from its number to what was said of it and whether that is right.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "c4d/observation.h"
#include "c4d/verdict.h"
#include "sim/collectives/judge.h"
#include "sim/collectives/scenario.h"

namespace aimaster::sim::collectives {

// FindHangs, or another one to compare it with.
using Analysis = std::function<std::vector<c4d::Verdict>(const c4d::Observation&, const c4d::HangTiming&)>;

struct SeedResult {
  Scenario scenario;  // its faults as they happened
  Judgement judgement;
  uint64_t events = 0;
  uint32_t observations = 0;
  Duration analysed{};  // by the processor's clock
  std::string story;    // where it was asked for
};

SeedResult RunSeed(uint64_t seed, const Analysis& analysis, bool told);

}  // namespace aimaster::sim::collectives
