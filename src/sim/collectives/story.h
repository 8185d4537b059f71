// Story: what a person needs to see why a verdict is right or wrong.
#pragma once

#include <string>
#include <vector>

#include "c4d/observation.h"
#include "c4d/verdict.h"
#include "sim/collectives/cluster.h"
#include "sim/collectives/judge.h"

namespace aimaster::sim::collectives {

std::string TellFaults(const Cluster& cluster);
// Who keeps others, and what the guilty and those who wait for them stand in.
std::string TellTruth(const Circumstances& circumstances);
std::string TellVerdicts(const std::vector<c4d::Verdict>& verdicts, const c4d::Observation& observation);
std::string TellJudgement(const Judgement& judgement);

}  // namespace aimaster::sim::collectives
