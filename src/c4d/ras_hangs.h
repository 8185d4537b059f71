// FindRasHangs: who hangs, by counters of launches alone.
//
// Nobody is known to be inside of an operation that all have launched. So whoever is behind seems to be outside, even
// where its program waits for a device that is stuck in one of those. Where that is so, all members of the communicator
// of that operation come to stand, and are behind wherever else they belong: then they are named as a group, of which
// none can be singled out. Whoever is behind alone is named.
#pragma once

#include <vector>

#include "c4d/ras_observation.h"
#include "c4d/verdict.h"

namespace aimaster::c4d {

// The worst first. Of whom nothing is known is said in any case, as NoProbeData.
std::vector<Verdict> FindRasHangs(const RasScene& scene, const HangTiming& timing);

}  // namespace aimaster::c4d
