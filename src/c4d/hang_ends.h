// HangEnds: where waiting ends, judged one by one. Four kinds:
//
//   a rank outside                    it is missed and waits for nobody: its program hangs, or its host
//   a rank that trails                others completed what it has not: its part of the communication hangs
//   an operation that has all it      whoever is behind in it; where nobody is, the group
//   needs, or whose members differ
//   a circle                          each waits for the next
//
// The first is certain, and so is the second where many groups agree. The others may only look like an end: a program
// that has not yet asked for the end of what it issued seems to stand there, while it waits for somebody else in what
// it issued later. So those count only where no way at all leads on to a certain one, or to where nobody looks.
#pragma once

#include <vector>

#include "c4d/missed.h"
#include "c4d/verdict.h"
#include "c4d/waits.h"

namespace aimaster::c4d {

// A verdict to be, and the ends of the search that it is about.
struct HangEnd {
  Verdict verdict;
  std::vector<uint32_t> components;
};

struct HangScene {
  const Observation& observation;
  const Places& places;
  const Waits& waits;
  const Components& components;
  const HangTiming& timing;
};

// Those that have lasted long enough for a verdict, in any order. Without who waits for them.
std::vector<HangEnd> JudgeEnds(const HangScene& scene);

// What communication hangs, what may fail the job; none: it is too young.
std::optional<Level> LevelOfHang(Duration since, bool may_be_error, const HangTiming& timing);

}  // namespace aimaster::c4d
