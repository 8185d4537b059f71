// Campaign: many seeds on several cores. Each worker is a process of its own, since a CHECK that fails ends it: that is
// a finding like any other, and the rest goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/break.h"

namespace aimaster::sim {

struct Finding {
  uint64_t seed = 0;
  std::string checker;
  std::string what;
};

struct CampaignOptions {
  std::vector<uint64_t> seeds;
  Break broken = Break::kNone;
  unsigned jobs = 1;
  bool stop_at_first = false;
  std::function<void(uint64_t done, uint64_t found)> on_progress;  // every now and then
};

struct CampaignResult {
  uint64_t seeds_run = 0;
  uint64_t events = 0;
  std::vector<Finding> findings;  // by seed
};

CampaignResult RunCampaign(const CampaignOptions& options);

}  // namespace aimaster::sim
