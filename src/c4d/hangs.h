// FindHangs: who hangs, in the communication layer or outside, and who only waits for them.
//
// A collective is done when all have come. So at the operation on which a group stands, those who have not issued it
// are missed by those who have; and who is missed may itself be waiting elsewhere. Follow the waiting from rank to
// rank, over all groups: whoever is waited for and waits for nobody is the culprit; a circle with no way out is told as
// one.
//
// Judging each group by itself was rejected: in a training of tensor, pipeline and data parallel groups one rank that
// stands still stops hundreds of groups within seconds, and in most of them another one looks guilty.
#pragma once

#include <vector>

#include "c4d/observation.h"
#include "c4d/verdict.h"

namespace aimaster::c4d {

// The worst first, then by rank. Pure; the same observation gives the same verdicts, in the same order. Nobody is
// accused who was not observed, and nobody for less than `timing.timeout`, where ages are known.
std::vector<Verdict> FindHangs(const Observation& observation, const HangTiming& timing);

}  // namespace aimaster::c4d
